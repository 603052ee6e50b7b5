"""A language server: what `lint` finds, while the source is being written."""
