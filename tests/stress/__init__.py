"""Tests of work in processes of its own."""
