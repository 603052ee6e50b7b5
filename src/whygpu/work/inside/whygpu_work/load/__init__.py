"""Puts a GPU under load: copies and products of matrices, by whichever framework is there."""
