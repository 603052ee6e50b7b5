"""Estimates how much GPU memory a model or a function needs, without using a GPU."""
