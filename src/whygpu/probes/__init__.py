"""Runs the frameworks for real, each in a subprocess of the target."""

DEFAULT_TIMEOUT = 120.0
"""Seconds that each framework may take; here, because reading it must import nothing else."""
