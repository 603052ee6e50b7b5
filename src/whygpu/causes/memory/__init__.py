"""Causes 5xx: memory of the GPU and of the computer."""
