"""Causes 7xx: what a program itself does wrong."""
