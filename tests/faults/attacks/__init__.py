"""The inputs: one module for each thing that whygpu reads."""
