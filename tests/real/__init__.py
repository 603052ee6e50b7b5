"""Tests against real frameworks, each in an environment of its own (tests/targets.py)."""
