"""The fault lab: real frameworks on machines that are broken in one known way."""
