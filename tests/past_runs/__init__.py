"""Past checks and runs."""
