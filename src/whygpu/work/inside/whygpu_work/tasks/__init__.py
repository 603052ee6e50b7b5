"""The tasks of main.py: one module for each, with `run(request, channel)`."""
