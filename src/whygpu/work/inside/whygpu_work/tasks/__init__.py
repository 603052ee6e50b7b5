"""What main.py is asked for: one module a task, each with `run(request, channel)`."""
