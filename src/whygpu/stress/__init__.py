"""Puts GPUs under load: which ones, with what, and what came of it."""
