"""Runs the frameworks for real, in subprocesses of the target."""

DEFAULT_TIMEOUT = 120.0
"""Seconds for each framework. It is defined here because reading it must import nothing else."""
STRESS_SECONDS = 10.0
"""Seconds for each GPU under load, without the start of the framework."""
