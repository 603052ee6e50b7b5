"""Runs the frameworks for real, in subprocesses of the target."""

DEFAULT_TIMEOUT = 120.0
"""Seconds for each framework. It is defined here because reading it must import nothing else."""
