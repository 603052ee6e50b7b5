"""Tests of whygpu.oom_guard()."""
