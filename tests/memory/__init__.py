"""Tests of what whygpu knows of memory."""
