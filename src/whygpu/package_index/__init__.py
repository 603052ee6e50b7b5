"""Reads published releases from the package index that pip is configured for."""
