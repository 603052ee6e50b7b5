"""Puts GPUs under load: which ones, with what, and the results."""
