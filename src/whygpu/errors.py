"""Errors that are the user's to mend, as opposed to bugs in whygpu."""


class UsageError(Exception):
    """Wrong usage or unreadable input. The message says what to do about it."""


class PolicyError(Exception):
    """A device policy that this machine cannot meet. The message says why, and what there is."""
