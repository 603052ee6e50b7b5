"""Keeps past checks and runs in a small database of the user's own."""
