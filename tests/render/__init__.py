"""Tests of whygpu.render."""
