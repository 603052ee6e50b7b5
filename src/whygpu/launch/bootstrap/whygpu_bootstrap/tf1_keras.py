"""What tf.keras.layers had and the Keras 2 inside TensorFlow 2 has not kept."""

from tensorflow.python.keras import backend, constraints, initializers, regularizers
from tensorflow.python.keras.engine import base_layer

from whygpu_bootstrap import tf1_layers

__all__ = ["BatchNormalization"]


class BatchNormalization(tf1_layers.BatchNormalizationParts, base_layer.Layer):
    """tf.keras.layers.BatchNormalization, following Keras's learning phase."""

    def __init__(
        self,
        axis=-1,
        momentum=0.99,
        epsilon=1e-3,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        moving_mean_initializer="zeros",
        moving_variance_initializer="ones",
        beta_regularizer=None,
        gamma_regularizer=None,
        beta_constraint=None,
        gamma_constraint=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.axis = axis
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)
        self.moving_mean_initializer = initializers.get(moving_mean_initializer)
        self.moving_variance_initializer = initializers.get(moving_variance_initializer)
        self.beta_regularizer = regularizers.get(beta_regularizer)
        self.gamma_regularizer = regularizers.get(gamma_regularizer)
        self.beta_constraint = constraints.get(beta_constraint)
        self.gamma_constraint = constraints.get(gamma_constraint)

    def call(self, inputs, training=None):
        return self.normalize(inputs, backend.learning_phase() if training is None else training)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        names = ("beta_initializer", "gamma_initializer")
        names += ("moving_mean_initializer", "moving_variance_initializer")
        config = super().get_config()
        config.update({name: initializers.serialize(getattr(self, name)) for name in names})
        for name in ("axis", "momentum", "epsilon", "center", "scale"):
            config[name] = getattr(self, name)
        for name in ("beta", "gamma"):
            regularizer = getattr(self, name + "_regularizer")
            config[name + "_regularizer"] = regularizers.serialize(regularizer)
            constraint = getattr(self, name + "_constraint")
            config[name + "_constraint"] = constraints.serialize(constraint)
        return config
