"""Which devices each framework used."""
