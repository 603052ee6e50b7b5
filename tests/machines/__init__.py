"""Example machines: healthy ones to vary, and recorded snapshots of real ones."""
