"""What a program does wrong with devices, seen in its source."""
