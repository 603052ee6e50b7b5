"""The memory that a program takes, and what it was doing when memory ran out."""
