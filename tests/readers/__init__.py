"""Tests of the readers: from text to typed evidence."""
