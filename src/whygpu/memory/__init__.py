"""GPU memory: who holds it, what a program needs of it, and what to do when it runs out."""
