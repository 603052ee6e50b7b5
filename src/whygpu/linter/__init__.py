"""Lint: finds files and settings, runs every detector on every file, and applies fixes."""
