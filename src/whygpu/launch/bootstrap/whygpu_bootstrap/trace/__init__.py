"""Where the operations of a program ran, one tracer per framework."""
