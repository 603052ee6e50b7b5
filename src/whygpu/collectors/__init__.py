"""One file per source: Host in, one part of the Snapshot out; collect.py joins them."""
