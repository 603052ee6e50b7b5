"""Causes 4xx: device selection, visibility and placement."""
