"""Causes 3xx: framework builds and Python packages."""
