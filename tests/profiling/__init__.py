"""What a recorded profile means: steps, shares of the time, predicted gains."""
