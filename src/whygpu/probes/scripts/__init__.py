"""Scripts that run inside the target: Python 3.6, the standard library and one framework."""
