"""What a ready-made estimator makes of logits: predictions, loss and metrics."""

import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1.estimator.estimator import EstimatorSpec, ModeKeys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Head:
    """The loss is the sum over a batch, as it was in TensorFlow 1."""

    loss_metric = "average_loss"

    @staticmethod
    def reduced(losses: "Any") -> "Any":
        return tf.reduce_sum(losses)

    # Methods of each subclass.
    losses: "Any"
    metrics: "Any"
    predictions: "Any"
    prepared: "Any"

    def __init__(self, size: "Any", weight_column: "Any") -> None:
        self.size = size
        self._weight_column = weight_column

    def spec(
        self, features: "Any", mode: "Any", labels: "Any", logits: "Any", train: "Any"
    ) -> "Any":
        predictions = self.predictions(logits)
        if mode == ModeKeys.PREDICT:
            return EstimatorSpec(mode, predictions=predictions)
        labels = self.prepared(labels)
        weights = self._weights(features, logits)
        losses = self.losses(labels, logits)
        loss = self.reduced(losses * weights)
        loss += sum(tf.losses.get_regularization_losses())
        metrics = {self.loss_metric: tf.metrics.mean(losses, weights)}
        if mode == ModeKeys.EVAL:
            metrics.update(self.metrics(labels, predictions, weights))
        train_op = train(loss) if mode == ModeKeys.TRAIN else None
        return EstimatorSpec(mode, predictions, loss, train_op, metrics)

    def _weights(self, features: "Any", logits: "Any") -> "Any":
        if self._weight_column is None:
            return tf.ones([tf.shape(logits)[0], 1])
        name = getattr(self._weight_column, "name", self._weight_column)
        return tf.reshape(tf.cast(features[name], tf.float32), [-1, 1])


class Regression(Head):
    def prepared(self, labels: "Any") -> "Any":
        return tf.reshape(tf.cast(labels, tf.float32), [-1, self.size])

    def predictions(self, logits: "Any") -> "dict[str, Any]":
        return {"predictions": logits}

    def losses(self, labels: "Any", logits: "Any") -> "Any":
        return tf.squared_difference(labels, logits)

    def metrics(self, labels: "Any", predictions: "Any", weights: "Any") -> "dict[str, Any]":
        return {
            "label/mean": tf.metrics.mean(labels, weights),
            "prediction/mean": tf.metrics.mean(predictions["predictions"], weights),
        }


class _Classes(Head):
    def __init__(
        self, size: "Any", classes: "Any", weight_column: "Any", vocabulary: "Any"
    ) -> None:
        super().__init__(size, weight_column)
        self._classes = classes
        self._vocabulary = vocabulary

    def prepared(self, labels: "Any") -> "Any":
        if self._vocabulary:
            from tensorflow.python.ops import lookup_ops

            labels = lookup_ops.index_table_from_tensor(list(self._vocabulary)).lookup(labels)
        return tf.reshape(tf.cast(labels, tf.int64), [-1, 1])

    def _named(self, probabilities: "Any", logits: "Any", more: "Any") -> "dict[str, Any]":
        chosen = tf.argmax(probabilities, axis=1)[:, None]
        names = tf.constant(self._vocabulary or [str(number) for number in range(self._classes)])
        rows = [tf.shape(logits)[0], 1]
        found = {
            "logits": logits,
            "probabilities": probabilities,
            "class_ids": chosen,
            "classes": tf.gather(names, chosen),
            "all_class_ids": tf.tile(tf.range(self._classes)[None], rows),
            "all_classes": tf.tile(names[None], rows),
        }
        return dict(found, **more)


class ManyClasses(_Classes):
    def __init__(self, classes: "Any", weight_column: "Any", vocabulary: "Any") -> None:
        super().__init__(classes, classes, weight_column, vocabulary)

    def predictions(self, logits: "Any") -> "Any":
        return self._named(tf.nn.softmax(logits), logits, {})

    def losses(self, labels: "Any", logits: "Any") -> "Any":
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels[:, 0], logits=logits)
        return losses[:, None]

    def metrics(self, labels: "Any", predictions: "Any", weights: "Any") -> "dict[str, Any]":
        return {"accuracy": tf.metrics.accuracy(labels, predictions["class_ids"], weights)}


class TwoClasses(_Classes):
    def __init__(self, weight_column: "Any", vocabulary: "Any") -> None:
        super().__init__(1, 2, weight_column, vocabulary)

    def predictions(self, logits: "Any") -> "Any":
        logistic = tf.sigmoid(logits)
        both = tf.nn.softmax(tf.concat([tf.zeros_like(logits), logits], 1))
        return self._named(both, logits, {"logistic": logistic})

    def losses(self, labels: "Any", logits: "Any") -> "Any":
        labels = tf.cast(labels, tf.float32)
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def metrics(self, labels: "Any", predictions: "Any", weights: "Any") -> "dict[str, Any]":
        chosen, logistic = predictions["class_ids"], predictions["logistic"]
        mean = tf.metrics.mean(tf.cast(labels, tf.float32), weights)
        baseline = tuple(tf.maximum(value, 1 - value) for value in mean)
        return {
            "accuracy": tf.metrics.accuracy(labels, chosen, weights),
            "accuracy_baseline": baseline,
            "auc": tf.metrics.auc(labels, logistic, weights),
            "auc_precision_recall": tf.metrics.auc(
                labels, logistic, weights, curve="PR", summation_method="careful_interpolation"
            ),
            "label/mean": mean,
            "precision": tf.metrics.precision(labels, chosen, weights),
            "prediction/mean": tf.metrics.mean(logistic, weights),
            "recall": tf.metrics.recall(labels, chosen, weights),
        }


def of_classes(n_classes: "Any", weight_column: "Any", vocabulary: "Any") -> "Any":
    if n_classes == 2:
        return TwoClasses(weight_column, vocabulary)
    return ManyClasses(n_classes, weight_column, vocabulary)
