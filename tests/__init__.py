"""Tests of whygpu; they mirror src/whygpu."""
