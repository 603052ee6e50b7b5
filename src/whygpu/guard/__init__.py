"""Keeps training running when memory runs out: computes a batch in parts, with the same result."""
