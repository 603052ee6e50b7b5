"""Running a user's own program under a device policy, and proving where it ran."""
