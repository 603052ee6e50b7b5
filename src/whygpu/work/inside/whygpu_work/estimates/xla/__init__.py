"""Memory of XLA programs, from XLA's GPU compiler if it is installed, else from a model."""
