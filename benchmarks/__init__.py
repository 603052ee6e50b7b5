"""Measurements: ratios between things timed side by side in one run, never absolute limits."""
