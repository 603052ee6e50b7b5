"""Tests of the readers of requirements, project and lock files."""
