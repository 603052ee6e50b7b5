"""Tests of whygpu.planner."""
