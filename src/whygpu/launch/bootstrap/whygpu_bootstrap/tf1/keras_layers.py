"""Layers of tf.keras.layers that the Keras 2 inside TensorFlow 2 no longer has."""

import tensorflow.compat.v1 as tf
from tensorflow.python.keras import backend, constraints, initializers, regularizers
from tensorflow.python.keras.engine import base_layer

from whygpu_bootstrap.tf1 import layers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BatchNormalization", "GaussianDropout", "GaussianNoise", "LayerNormalization"]


class BatchNormalization(layers.BatchNormalizationParts, base_layer.Layer):
    """tf.keras.layers.BatchNormalization, following Keras's learning phase."""

    def __init__(
        self,
        axis: "Any" = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: str = "zeros",
        gamma_initializer: str = "ones",
        moving_mean_initializer: str = "zeros",
        moving_variance_initializer: str = "ones",
        beta_regularizer: "Any" = None,
        gamma_regularizer: "Any" = None,
        beta_constraint: "Any" = None,
        gamma_constraint: "Any" = None,
        **kwargs: "Any",
    ) -> None:
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

    def call(self, inputs: "Any", training: "Any" = None) -> "Any":
        return self.normalize(inputs, backend.learning_phase() if training is None else training)

    def compute_output_shape(self, input_shape: "Any") -> "Any":
        return input_shape

    def get_config(self) -> "Any":
        names = ["beta_initializer", "gamma_initializer"]
        names += ["moving_mean_initializer", "moving_variance_initializer"]
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


class LayerNormalization(base_layer.Layer):
    """tf.keras.layers.LayerNormalization."""

    def __init__(
        self,
        axis: "Any" = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: str = "zeros",
        gamma_initializer: str = "ones",
        **kwargs: "Any",
    ) -> None:
        super().__init__(**kwargs)
        self.axis = axis
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer = initializers.get(beta_initializer)
        self.gamma_initializer = initializers.get(gamma_initializer)

    def build(self, input_shape: "Any") -> None:
        rank = len(input_shape)
        listed = self.axis if isinstance(self.axis, (list, tuple)) else [self.axis]
        self.axes = sorted(axis % rank for axis in listed)
        sizes = tf.TensorShape(input_shape).as_list()
        shape = [sizes[axis] for axis in self.axes]
        # Parameters lie along the normalized axes, and are the same along all others.
        self.spread = [sizes[axis] if axis in self.axes else 1 for axis in range(rank)]
        self.gamma = self.beta = None
        if self.scale:
            self.gamma = self.add_weight("gamma", shape, initializer=self.gamma_initializer)
        if self.center:
            self.beta = self.add_weight("beta", shape, initializer=self.beta_initializer)
        self.built = True

    def call(self, inputs: "Any") -> "Any":
        mean, variance = tf.nn.moments(inputs, self.axes, keep_dims=True)
        gamma, beta = (
            None if each is None else tf.reshape(each, self.spread)
            for each in (self.gamma, self.beta)
        )
        return tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, self.epsilon)

    def compute_output_shape(self, input_shape: "Any") -> "Any":
        return input_shape

    def get_config(self) -> "Any":
        config = super().get_config()
        for name in ("beta_initializer", "gamma_initializer"):
            config[name] = initializers.serialize(getattr(self, name))
        for name in ("axis", "epsilon", "center", "scale"):
            config[name] = getattr(self, name)
        return config


class GaussianNoise(base_layer.Layer):
    """Noise added while training."""

    def __init__(self, stddev: "Any", **kwargs: "Any") -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.stddev = stddev

    def call(self, inputs: "Any", training: "Any" = None) -> "Any":
        def noisy() -> "Any":
            return inputs + backend.random_normal(tf.shape(inputs), stddev=self.stddev)

        return backend.in_train_phase(noisy, inputs, training=training)

    def compute_output_shape(self, input_shape: "Any") -> "Any":
        return input_shape

    def get_config(self) -> "dict[str, Any]":
        return dict(super().get_config(), stddev=self.stddev)


class GaussianDropout(base_layer.Layer):
    """Noise multiplied while training."""

    def __init__(self, rate: "Any", **kwargs: "Any") -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.rate = rate

    def call(self, inputs: "Any", training: "Any" = None) -> "Any":
        if not 0 < self.rate < 1:
            return inputs
        deviation = (self.rate / (1.0 - self.rate)) ** 0.5

        def noisy() -> "Any":
            return inputs * backend.random_normal(tf.shape(inputs), mean=1.0, stddev=deviation)

        return backend.in_train_phase(noisy, inputs, training=training)

    def compute_output_shape(self, input_shape: "Any") -> "Any":
        return input_shape

    def get_config(self) -> "dict[str, Any]":
        return dict(super().get_config(), rate=self.rate)
