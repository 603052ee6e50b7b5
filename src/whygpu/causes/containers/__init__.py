"""Causes 8xx: containers, WSL, schedulers and other vendors."""
