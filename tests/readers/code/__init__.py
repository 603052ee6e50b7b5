"""Tests of the readers of source code."""
