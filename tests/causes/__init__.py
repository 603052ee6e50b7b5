"""Tests of whygpu.causes."""
