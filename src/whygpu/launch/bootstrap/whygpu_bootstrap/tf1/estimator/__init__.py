"""tf.estimator, which TensorFlow 2.16 removed."""
