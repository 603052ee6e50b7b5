"""Tests of whygpu.probes."""
