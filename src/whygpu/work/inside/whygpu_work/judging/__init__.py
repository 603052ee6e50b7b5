"""How far apart two lanes may be: what rounding explains, by a float64 reference."""
