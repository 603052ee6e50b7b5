"""Training that goes on where memory runs out: batches computed in parts, mathematics unchanged."""
