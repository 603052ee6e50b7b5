"""Causes 2xx: CUDA and cuDNN libraries, and the loader that finds them."""
