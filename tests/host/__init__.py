"""Tests of whygpu.host."""
