"""Turns text into typed evidence: logs and source code."""
