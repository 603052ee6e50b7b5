"""Tests of whygpu.collectors."""
