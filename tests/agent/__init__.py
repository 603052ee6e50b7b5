"""Tests of whygpu.agent."""
