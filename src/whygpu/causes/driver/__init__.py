"""Causes 1xx: the NVIDIA driver and the hardware."""
