"""Runs the frameworks for real, each in a subprocess of the target."""
