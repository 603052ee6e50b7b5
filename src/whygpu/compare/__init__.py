"""What lanes gave, judged: equal, rounding or different. Pure: numbers in, verdicts out."""
