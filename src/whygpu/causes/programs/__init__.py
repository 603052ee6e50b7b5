"""Causes 7xx: errors in the program itself."""
