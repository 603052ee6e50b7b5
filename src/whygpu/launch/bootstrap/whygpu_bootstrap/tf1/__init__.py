"""TensorFlow 1 programs on TensorFlow 2 (`--tf1`)."""
