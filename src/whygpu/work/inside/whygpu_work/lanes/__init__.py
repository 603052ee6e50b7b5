"""One lane of a comparison: the work, its weights, its inputs, what it computes and how fast."""
