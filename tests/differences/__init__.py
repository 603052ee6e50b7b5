"""Comparing two machines."""
