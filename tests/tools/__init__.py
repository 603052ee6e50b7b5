"""Tests of the tools that make the project's own files."""
