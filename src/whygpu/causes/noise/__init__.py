"""Causes 9xx: what looks like trouble and is none."""
