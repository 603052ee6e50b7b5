"""The parts of tf.contrib that programs use."""
