"""The ready-made estimators of TensorFlow 1: linear models, deep ones, and both at once."""

import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1.contrib.parts import OPTIMIZERS
from whygpu_bootstrap.tf1.estimator import heads
from whygpu_bootstrap.tf1.estimator.estimator import Estimator, ModeKeys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["DNNClassifier", "DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor"]
__all__ += ["DNNRegressor", "LinearClassifier", "LinearRegressor"]


class Deep:
    """Layers on top of the dense features, in the scope `dnn`."""

    def __init__(
        self,
        columns: "Any",
        hidden_units: "Any",
        optimizer: "Any",
        activation: "Any",
        dropout: "Any",
        batch_norm: "Any",
    ) -> None:
        if batch_norm:
            raise NotImplementedError("the estimators under --tf1 have no batch_norm")
        self.columns = list(columns or ())
        self._units = hidden_units
        self._optimizer = optimizer
        self._activation = activation
        self._dropout = dropout

    scope = "dnn"

    def logits(self, features: "Any", size: "Any", mode: "Any") -> "Any":
        with tf.variable_scope("dnn"):
            with tf.variable_scope("input_from_feature_columns"):
                net = tf.feature_column.input_layer(features, self.columns)
            for number, units in enumerate(self._units):
                with tf.variable_scope("hiddenlayer_%d" % number):
                    net = self._activation(_dense(net, units))
                    if self._dropout is not None and mode == ModeKeys.TRAIN:
                        net = tf.nn.dropout(net, rate=self._dropout)
            with tf.variable_scope("logits"):
                return _dense(net, size)

    def optimizer(self, alone: "Any") -> "Any":
        return _made(self._optimizer, 0.05)


class Linear:
    """Weights for each feature, in the scope `linear`."""

    def __init__(self, columns: "Any", optimizer: "Any", sparse_combiner: "Any") -> None:
        self.columns = list(columns or ())
        self._optimizer = optimizer
        self._combiner = sparse_combiner

    scope = "linear"

    def logits(self, features: "Any", size: "Any", mode: "Any") -> "Any":
        with tf.variable_scope("linear"):
            return tf.feature_column.linear_model(
                features, self.columns, units=size, sparse_combiner=self._combiner
            )

    def optimizer(self, alone: "Any") -> "Any":
        highest = 0.2 if alone else 0.005
        return _made(self._optimizer, min(highest, 1.0 / len(self.columns) ** 0.5))


def _dense(inputs: "Any", units: "Any") -> "Any":
    size = inputs.shape.dims[1].value
    kernel = tf.get_variable("kernel", [size, units], initializer=tf.glorot_uniform_initializer())
    bias = tf.get_variable("bias", [units], initializer=tf.zeros_initializer())
    return tf.matmul(inputs, kernel) + bias


def _made(optimizer: "Any", rate: "Any") -> "Any":
    if isinstance(optimizer, str):
        return OPTIMIZERS[optimizer](rate)
    return optimizer() if callable(optimizer) else optimizer


class Canned(Estimator):
    def __init__(self, head: "Any", parts: "Any", model_dir: "Any", config: "Any") -> None:
        parts = [part for part in parts if part.columns]
        if not parts:
            raise ValueError("Either linear_feature_columns or dnn_feature_columns must be given.")

        def model_fn(features: "Any", labels: "Any", mode: "Any") -> "Any":
            logits = sum(part.logits(features, head.size, mode) for part in parts)

            def train(loss: "Any") -> "Any":
                steps = [
                    part.optimizer(len(parts) == 1).minimize(
                        loss,
                        var_list=tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, part.scope),
                    )
                    for part in parts
                ]
                with tf.control_dependencies(steps):
                    return tf.assign_add(tf.train.get_global_step(), 1).op

            return head.spec(features, mode, labels, logits, train)

        super().__init__(model_fn, model_dir, config)


class DNNClassifier(Canned):
    def __init__(
        self,
        hidden_units: "Any",
        feature_columns: "Any",
        model_dir: "Any" = None,
        n_classes: "Any" = 2,
        weight_column: "Any" = None,
        label_vocabulary: "Any" = None,
        optimizer: str = "Adagrad",
        activation_fn: "Any" = tf.nn.relu,
        dropout: "Any" = None,
        input_layer_partitioner: "Any" = None,
        config: "Any" = None,
        batch_norm: bool = False,
    ) -> None:
        head = heads.of_classes(n_classes, weight_column, label_vocabulary)
        deep = Deep(feature_columns, hidden_units, optimizer, activation_fn, dropout, batch_norm)
        super().__init__(head, [deep], model_dir, config)


class DNNRegressor(Canned):
    def __init__(
        self,
        hidden_units: "Any",
        feature_columns: "Any",
        model_dir: "Any" = None,
        label_dimension: "Any" = 1,
        weight_column: "Any" = None,
        optimizer: str = "Adagrad",
        activation_fn: "Any" = tf.nn.relu,
        dropout: "Any" = None,
        input_layer_partitioner: "Any" = None,
        config: "Any" = None,
        batch_norm: bool = False,
    ) -> None:
        head = heads.Regression(label_dimension, weight_column)
        deep = Deep(feature_columns, hidden_units, optimizer, activation_fn, dropout, batch_norm)
        super().__init__(head, [deep], model_dir, config)


class LinearClassifier(Canned):
    def __init__(
        self,
        feature_columns: "Any",
        model_dir: "Any" = None,
        n_classes: "Any" = 2,
        weight_column: "Any" = None,
        label_vocabulary: "Any" = None,
        optimizer: str = "Ftrl",
        config: "Any" = None,
        partitioner: "Any" = None,
        sparse_combiner: str = "sum",
    ) -> None:
        head = heads.of_classes(n_classes, weight_column, label_vocabulary)
        linear = Linear(feature_columns, optimizer, sparse_combiner)
        super().__init__(head, [linear], model_dir, config)


class LinearRegressor(Canned):
    def __init__(
        self,
        feature_columns: "Any",
        model_dir: "Any" = None,
        label_dimension: "Any" = 1,
        weight_column: "Any" = None,
        optimizer: str = "Ftrl",
        config: "Any" = None,
        partitioner: "Any" = None,
        sparse_combiner: str = "sum",
    ) -> None:
        head = heads.Regression(label_dimension, weight_column)
        linear = Linear(feature_columns, optimizer, sparse_combiner)
        super().__init__(head, [linear], model_dir, config)


class _Combined(Canned):
    def __init__(
        self,
        head: "Any",
        model_dir: "Any" = None,
        linear_feature_columns: "Any" = None,
        linear_optimizer: str = "Ftrl",
        dnn_feature_columns: "Any" = None,
        dnn_optimizer: str = "Adagrad",
        dnn_hidden_units: "Any" = None,
        dnn_activation_fn: "Any" = tf.nn.relu,
        dnn_dropout: "Any" = None,
        config: "Any" = None,
        batch_norm: bool = False,
        linear_sparse_combiner: str = "sum",
    ) -> None:
        deep = Deep(
            dnn_feature_columns,
            dnn_hidden_units,
            dnn_optimizer,
            dnn_activation_fn,
            dnn_dropout,
            batch_norm,
        )
        linear = Linear(linear_feature_columns, linear_optimizer, linear_sparse_combiner)
        super().__init__(head, [deep, linear], model_dir, config)


class DNNLinearCombinedClassifier(_Combined):
    def __init__(
        self,
        model_dir: "Any" = None,
        *,
        n_classes: "Any" = 2,
        weight_column: "Any" = None,
        label_vocabulary: "Any" = None,
        **options: "Any",
    ) -> None:
        head = heads.of_classes(n_classes, weight_column, label_vocabulary)
        super().__init__(head, model_dir, **options)


class DNNLinearCombinedRegressor(_Combined):
    def __init__(
        self,
        model_dir: "Any" = None,
        *,
        label_dimension: "Any" = 1,
        weight_column: "Any" = None,
        **options: "Any",
    ) -> None:
        super().__init__(heads.Regression(label_dimension, weight_column), model_dir, **options)
