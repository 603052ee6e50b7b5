"""From source code to the program that it tells."""
