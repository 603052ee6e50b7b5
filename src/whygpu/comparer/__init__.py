"""Lanes of a comparison: their words, their processes, and what is measured of them."""
