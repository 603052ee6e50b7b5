"""The command line: one error boundary, one file per verb."""
