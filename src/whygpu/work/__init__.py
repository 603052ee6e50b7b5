"""A piece of the user's work, done in a process of its own in the target interpreter."""
