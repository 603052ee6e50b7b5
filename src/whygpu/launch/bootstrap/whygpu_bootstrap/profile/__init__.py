"""What the program does with its time: samples of its stack, marks of its steps."""
