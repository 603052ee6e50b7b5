"""Tests of whygpu.cli."""
