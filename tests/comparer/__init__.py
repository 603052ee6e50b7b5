"""Tests of lanes and their verdicts, and of what runs for them in the target."""
