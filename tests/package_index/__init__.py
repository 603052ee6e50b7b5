"""Tests of reading the package index."""
