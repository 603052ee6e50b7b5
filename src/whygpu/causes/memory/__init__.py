"""Causes 5xx: memory."""
