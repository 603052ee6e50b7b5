"""The types of whygpu: immutable values without I/O. They import no other package of whygpu."""
