"""Causes 2xx: CUDA and cuDNN libraries, and how the dynamic loader finds them."""
