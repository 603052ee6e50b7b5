"""The one door to the machine: everything whygpu learns of it passes through a Host."""
