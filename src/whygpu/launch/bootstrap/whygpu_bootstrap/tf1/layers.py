"""Batch normalization of tf.layers, which the TensorFlow 2 package no longer has."""

import tensorflow.compat.v1 as tf
from tensorflow.python.keras.legacy_tf_layers import base

from whygpu_bootstrap.tf1 import normalization

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["BatchNorm", "BatchNormalization", "batch_norm", "batch_normalization"]


class BatchNormalizationParts:
    """Variables and call of a batch normalization layer, for tf.layers and for tf.keras."""

    # The layer's own.
    axis: "Any"
    center: bool
    epsilon: float
    momentum: float
    name: str
    scale: bool
    trainable: bool
    add_update: "Any"
    add_weight: "Any"

    def build(self, input_shape: "Any") -> None:
        size = tf.TensorShape(input_shape).dims[self.axis].value
        if size is None:
            raise ValueError(
                "The size of axis %d of the inputs of `%s`, which is normalized, is unknown: "
                "the inputs have shape %s." % (self.axis, self.name, input_shape)
            )
        self.gamma = self._weight("gamma", size, self.scale)
        self.beta = self._weight("beta", size, self.center)
        self.moving_mean = self._weight("moving_mean", size, learned=False)
        self.moving_variance = self._weight("moving_variance", size, learned=False)
        self.built = True

    def _weight(self, name: "Any", size: "Any", wanted: bool = True, learned: bool = True) -> "Any":
        if not wanted:
            return None
        options = {"trainable": learned and self.trainable}
        if learned:
            options["regularizer"] = getattr(self, name + "_regularizer")
            options["constraint"] = getattr(self, name + "_constraint")
        initializer = getattr(self, name + "_initializer")
        return self.add_weight(name=name, shape=(size,), initializer=initializer, **options)

    def normalize(self, inputs: "Any", training: "Any") -> "Any":
        outputs, updates = normalization.batch_normalization(
            inputs,
            self.axis,
            self.gamma,
            self.beta,
            self.moving_mean,
            self.moving_variance,
            self.epsilon,
            self.momentum,
            training,
        )
        for update in updates:
            self.add_update(update)
        outputs.set_shape(inputs.shape)
        return outputs


class BatchNormalization(BatchNormalizationParts, base.Layer):
    """tf.layers.BatchNormalization."""

    def __init__(
        self,
        axis: "Any" = -1,
        momentum: float = 0.99,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: "Any" = None,
        gamma_initializer: "Any" = None,
        moving_mean_initializer: "Any" = None,
        moving_variance_initializer: "Any" = None,
        beta_regularizer: "Any" = None,
        gamma_regularizer: "Any" = None,
        beta_constraint: "Any" = None,
        gamma_constraint: "Any" = None,
        renorm: bool = False,
        renorm_clipping: "Any" = None,
        renorm_momentum: float = 0.99,
        fused: "Any" = None,
        trainable: bool = True,
        virtual_batch_size: "Any" = None,
        adjustment: "Any" = None,
        name: "Any" = None,
        **kwargs: "Any",
    ) -> None:
        super().__init__(name=name, trainable=trainable, **kwargs)
        if renorm or virtual_batch_size is not None or adjustment is not None:
            raise NotImplementedError(
                "tf.layers.batch_normalization with renorm, virtual_batch_size or adjustment "
                "needs Keras 2: `pip install tf_keras`."
            )
        self.axis = axis[0] if isinstance(axis, (list, tuple)) else axis
        self.momentum = momentum
        self.epsilon = epsilon
        self.center = center
        self.scale = scale
        self.beta_initializer = beta_initializer or tf.zeros_initializer()
        self.gamma_initializer = gamma_initializer or tf.ones_initializer()
        self.moving_mean_initializer = moving_mean_initializer or tf.zeros_initializer()
        self.moving_variance_initializer = moving_variance_initializer or tf.ones_initializer()
        self.beta_regularizer = beta_regularizer
        self.gamma_regularizer = gamma_regularizer
        self.beta_constraint = beta_constraint
        self.gamma_constraint = gamma_constraint

    def call(self, inputs: "Any", training: bool = False) -> "Any":
        return self.normalize(inputs, training)


def batch_normalization(
    inputs: "Any",
    *args: "Any",
    training: bool = False,
    name: "Any" = None,
    reuse: "Any" = None,
    **kwargs: "Any",
) -> "Any":
    """tf.layers.batch_normalization; everything up to `training` goes to the layer."""
    make: "Any" = BatchNormalization
    layer = make(*args, name=name, _reuse=reuse, _scope=name, **kwargs)
    return layer(inputs, training=training)


BatchNorm = BatchNormalization
batch_norm = batch_normalization
