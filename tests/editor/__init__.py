"""Tests of whygpu.editor."""
