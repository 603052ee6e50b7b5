"""Tests of whygpu.compare, and of the arithmetic in the target that feeds it."""
