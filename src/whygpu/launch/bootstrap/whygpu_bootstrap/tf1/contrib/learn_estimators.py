"""The ready-made estimators of tf.contrib.learn: `fit` and `predict` on arrays or input functions.

They differ from those of tf.estimator in the loss (a mean over the batch), in the names of their
variables and metrics, and in the methods.
"""

import numpy
import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1.contrib.feature_columns import real_valued_column
from whygpu_bootstrap.tf1.estimator import canned, heads
from whygpu_bootstrap.tf1.estimator.inputs import numpy_input_fn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator

__all__ = ["DNNClassifier", "DNNLinearCombinedClassifier", "DNNLinearCombinedRegressor"]
__all__ += ["DNNRegressor", "LinearClassifier", "LinearRegressor"]
__all__ += ["infer_real_valued_columns_from_input"]


def infer_real_valued_columns_from_input(x: "Any") -> "list[Any]":
    """One column for all features of an array of rows."""
    return [real_valued_column("", dimension=numpy.shape(x)[1])]


class _Linear(canned.Linear):
    """Weights for each column, under the names that tf.contrib.layers gave them."""

    def logits(self, features: "Any", size: "Any", mode: "Any") -> "Any":
        from tensorflow.python.feature_column import feature_column_v2 as columns

        cache = columns.FeatureTransformationCache(features)
        with tf.variable_scope("linear"):
            sums = [
                _weighted(column, cache, size)
                for column in sorted(self.columns, key=lambda column: column.name)
            ]
            bias = tf.get_variable("bias_weight", [size], initializer=tf.zeros_initializer())
            return tf.nn.bias_add(tf.add_n(sums), bias)

    def optimizer(self, alone: "Any") -> "Any":
        return super().optimizer(True)


def _weighted(column: "Any", cache: "Any", size: "Any") -> "Any":
    zeros = tf.zeros_initializer()
    with tf.variable_scope(None, column.name or "column"):
        if hasattr(column, "get_sparse_tensors") and hasattr(column, "num_buckets"):
            found = column.get_sparse_tensors(cache, None)
            weights = tf.get_variable("weights", [column.num_buckets, size], initializer=zeros)
            return tf.nn.safe_embedding_lookup_sparse(
                weights, found.id_tensor, found.weight_tensor, combiner="sum"
            )
        dense = column.get_dense_tensor(cache, None)
        width = int(numpy.prod(dense.shape.as_list()[1:]))
        weight = tf.get_variable("weight", [width, size], initializer=zeros)
        return tf.matmul(tf.reshape(dense, [-1, width]), weight)


class _Mean:
    """What the heads of tf.contrib.learn share: the loss is the mean over the batch."""

    loss_metric = "loss"

    @staticmethod
    def reduced(losses: "Any") -> "Any":
        return tf.reduce_mean(losses)


class _Regression(_Mean, heads.Regression):
    def predictions(self, logits: "Any") -> "dict[str, Any]":
        return {"scores": logits[:, 0] if self.size == 1 else logits}

    def metrics(self, labels: "Any", predictions: "Any", weights: "Any") -> "dict[str, Any]":
        return {}


class _ManyClasses(_Mean, heads.ManyClasses):
    def predictions(self, logits: "Any") -> "dict[str, Any]":
        return _with_classes(super().predictions(logits))


class _TwoClasses(_Mean, heads.TwoClasses):
    def predictions(self, logits: "Any") -> "dict[str, Any]":
        return _with_classes(super().predictions(logits))

    def metrics(self, labels: "Any", predictions: "Any", weights: "Any") -> "dict[str, Any]":
        logistic = predictions["logistic"]
        mean = tf.metrics.mean(tf.cast(labels, tf.float32), weights)
        accuracy = tf.metrics.accuracy(labels, predictions["class_ids"], weights)
        positive = tf.greater_equal(logistic, 0.5)
        return {
            "accuracy": accuracy,
            "accuracy/baseline_label_mean": mean,
            "accuracy/threshold_0.500000_mean": accuracy,
            "auc": tf.metrics.auc(labels, logistic, weights),
            "auc_precision_recall": tf.metrics.auc(labels, logistic, weights, curve="PR"),
            "labels/actual_label_mean": mean,
            "labels/prediction_mean": tf.metrics.mean(logistic, weights),
            "precision/positive_threshold_0.500000_mean": tf.metrics.precision(
                labels, positive, weights
            ),
            "recall/positive_threshold_0.500000_mean": tf.metrics.recall(labels, positive, weights),
        }


def _with_classes(found: "dict[str, Any]") -> "dict[str, Any]":
    """`classes` holds numbers here; in tf.estimator it holds names."""
    return dict(found, classes=found["class_ids"][:, 0])


def _classes_head(n_classes: "Any", weight_column_name: "Any") -> "Any":
    if n_classes == 2:
        return _TwoClasses(weight_column_name, None)
    return _ManyClasses(n_classes, weight_column_name, None)


_ABOUT_STORAGE = (
    "_joint_weight",
    "_joint_weights",
    "fix_global_step_increment_bug",
    "input_layer_min_slice_size",
)
"""Options that do not change what is learnt."""


class _Estimator(canned.Canned):
    """`fit`, `evaluate` and `predict`; data are arrays (x, y) or come from an input function."""

    answer = "classes"

    def __init__(
        self, head: "Any", parts: "Any", model_dir: "Any", config: "Any" = None, **others: "Any"
    ) -> None:
        for name, value in others.items():
            if value and name not in _ABOUT_STORAGE:
                raise NotImplementedError("tf.contrib.learn under --tf1 has no %s" % name)
        super().__init__(head, parts, model_dir, config)

    def fit(
        self,
        x: "Any" = None,
        y: "Any" = None,
        input_fn: "Any" = None,
        steps: "Any" = None,
        batch_size: "Any" = None,
        monitors: "Any" = None,
        max_steps: "Any" = None,
    ) -> "Any":
        source = input_fn or _arrays(x, y, batch_size, None)
        return self.train(source, hooks=monitors, steps=steps, max_steps=max_steps)

    def evaluate(  # type: ignore[override]
        self,
        x: "Any" = None,
        y: "Any" = None,
        input_fn: "Any" = None,
        feed_fn: "Any" = None,
        batch_size: "Any" = None,
        steps: "Any" = None,
        metrics: "Any" = None,
        name: "Any" = None,
        checkpoint_path: "Any" = None,
        hooks: "Any" = None,
    ) -> "Any":
        if metrics is not None or feed_fn is not None:
            raise NotImplementedError(
                "tf.contrib.learn under --tf1 evaluates without metrics= and feed_fn="
            )
        source = input_fn or _arrays(x, y, batch_size, 1)
        return super().evaluate(source, steps, hooks, checkpoint_path, name)

    def predict(  # type: ignore[override]
        self,
        x: "Any" = None,
        input_fn: "Any" = None,
        batch_size: "Any" = None,
        outputs: "Any" = None,
        as_iterable: bool = True,
    ) -> "Any":
        """One answer for each example: its class or its score, or the outputs named."""
        source = input_fn or _arrays(x, None, batch_size, 1)
        rows = self._answers(source, outputs)
        return rows if as_iterable else _stacked(list(rows))

    def _answers(self, source: "Any", outputs: "Any") -> "Iterator[Any]":
        for row in super().predict(source, predict_keys=outputs or [self.answer]):
            yield row if outputs else row[self.answer]

    def predict_classes(self, *args: "Any", **kwargs: "Any") -> "Any":
        return self.predict(*args, **kwargs)

    def predict_scores(self, *args: "Any", **kwargs: "Any") -> "Any":
        return self.predict(*args, **kwargs)

    def predict_proba(self, *args: "Any", **kwargs: "Any") -> "Any":
        rows = self.predict(*args, **dict(kwargs, outputs=["probabilities"]))
        if isinstance(rows, dict):
            return rows["probabilities"]
        return (row["probabilities"] for row in rows)

    def _inputs(self, input_fn: "Any", mode: "Any") -> "tuple[Any, ...]":
        features, labels = super()._inputs(input_fn, mode)
        return features if isinstance(features, dict) else {"": features}, labels


def _stacked(rows: "Any") -> "Any":
    if rows and isinstance(rows[0], dict):
        return {name: numpy.array([row[name] for row in rows]) for name in rows[0]}
    return numpy.array(rows)


def _arrays(x: "Any", y: "Any", batch_size: "Any", epochs: "Any") -> "Any":
    """Batches of arrays: one pass in order, or shuffled passes without end."""
    if x is None:
        raise ValueError("Either x or input_fn must be provided.")
    x = numpy.asarray(x)
    x = x.astype(numpy.float32) if x.dtype.kind == "f" else x
    y = None if y is None else numpy.asarray(y)
    return numpy_input_fn(x, y, batch_size or len(x), epochs, shuffle=epochs is None)


class LinearClassifier(_Estimator):
    def __init__(
        self,
        feature_columns: "Any",
        model_dir: "Any" = None,
        n_classes: int = 2,
        weight_column_name: "Any" = None,
        optimizer: "Any" = None,
        **options: "Any",
    ) -> None:
        part = _Linear(feature_columns, optimizer or "Ftrl", "sum")
        super().__init__(_classes_head(n_classes, weight_column_name), [part], model_dir, **options)


class LinearRegressor(_Estimator):
    answer = "scores"

    def __init__(
        self,
        feature_columns: "Any",
        model_dir: "Any" = None,
        weight_column_name: "Any" = None,
        optimizer: "Any" = None,
        label_dimension: int = 1,
        **options: "Any",
    ) -> None:
        part = _Linear(feature_columns, optimizer or "Ftrl", "sum")
        head = _Regression(label_dimension, weight_column_name)
        super().__init__(head, [part], model_dir, **options)


class DNNClassifier(_Estimator):
    def __init__(
        self,
        hidden_units: "Any",
        feature_columns: "Any",
        model_dir: "Any" = None,
        n_classes: int = 2,
        weight_column_name: "Any" = None,
        optimizer: "Any" = None,
        activation_fn: "Any" = tf.nn.relu,
        dropout: "Any" = None,
        **options: "Any",
    ) -> None:
        part = _deep(feature_columns, hidden_units, optimizer, activation_fn, dropout)
        super().__init__(_classes_head(n_classes, weight_column_name), [part], model_dir, **options)


class DNNRegressor(_Estimator):
    answer = "scores"

    def __init__(
        self,
        hidden_units: "Any",
        feature_columns: "Any",
        model_dir: "Any" = None,
        weight_column_name: "Any" = None,
        optimizer: "Any" = None,
        activation_fn: "Any" = tf.nn.relu,
        dropout: "Any" = None,
        label_dimension: int = 1,
        **options: "Any",
    ) -> None:
        part = _deep(feature_columns, hidden_units, optimizer, activation_fn, dropout)
        head = _Regression(label_dimension, weight_column_name)
        super().__init__(head, [part], model_dir, **options)


def _deep(
    columns: "Any", hidden_units: "Any", optimizer: "Any", activation_fn: "Any", dropout: "Any"
) -> "Any":
    return canned.Deep(
        columns, hidden_units, optimizer or "Adagrad", activation_fn or tf.nn.relu, dropout, False
    )


class _Combined(_Estimator):
    def __init__(
        self,
        head: "Any",
        model_dir: "Any",
        linear_feature_columns: "Any" = None,
        linear_optimizer: "Any" = None,
        dnn_feature_columns: "Any" = None,
        dnn_optimizer: "Any" = None,
        dnn_hidden_units: "Any" = None,
        dnn_activation_fn: "Any" = tf.nn.relu,
        dnn_dropout: "Any" = None,
        **options: "Any",
    ) -> None:
        deep = _deep(
            dnn_feature_columns, dnn_hidden_units, dnn_optimizer, dnn_activation_fn, dnn_dropout
        )
        linear = _Linear(linear_feature_columns, linear_optimizer or "Ftrl", "sum")
        super().__init__(head, [deep, linear], model_dir, **options)


class DNNLinearCombinedClassifier(_Combined):
    def __init__(
        self,
        model_dir: "Any" = None,
        n_classes: int = 2,
        weight_column_name: "Any" = None,
        **options: "Any",
    ) -> None:
        super().__init__(_classes_head(n_classes, weight_column_name), model_dir, **options)


class DNNLinearCombinedRegressor(_Combined):
    answer = "scores"

    def __init__(
        self,
        model_dir: "Any" = None,
        weight_column_name: "Any" = None,
        label_dimension: int = 1,
        **options: "Any",
    ) -> None:
        super().__init__(_Regression(label_dimension, weight_column_name), model_dir, **options)
