"""Tests of `whygpu run`."""
