"""Reads published releases from the package index into src/whygpu/tables/releases.json."""
