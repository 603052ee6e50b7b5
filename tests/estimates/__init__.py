"""Models whose memory was measured on a GPU, and the figures."""
