"""Tests of whygpu.tables."""
