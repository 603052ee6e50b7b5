"""Attacks on whygpu: hostile inputs for every verb, and what has to hold whatever they are."""
