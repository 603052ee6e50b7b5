"""Tests of whygpu.api."""
