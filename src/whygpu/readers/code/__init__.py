"""Turns source code into a Program."""
