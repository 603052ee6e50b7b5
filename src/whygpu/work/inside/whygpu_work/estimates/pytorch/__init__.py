"""PyTorch on its meta device: what would be allocated, replayed through its allocator's rules."""
