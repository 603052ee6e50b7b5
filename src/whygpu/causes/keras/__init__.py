"""Causes 6xx: Keras and its backends."""
