"""How far apart two lanes may be: rounding, bounded by a float64 reference, and what exceeds it."""
