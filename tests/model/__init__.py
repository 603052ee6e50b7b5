"""Tests of whygpu.model."""
