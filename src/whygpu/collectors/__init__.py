"""One module per source: each takes a Host and returns one part of the Snapshot."""
