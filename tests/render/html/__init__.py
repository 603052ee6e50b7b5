"""Tests of answers as HTML."""
