"""Tests of lanes: their words, and what is shared, recorded and measured in them."""
