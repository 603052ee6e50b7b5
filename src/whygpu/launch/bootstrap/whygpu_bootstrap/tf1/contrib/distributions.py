"""MultivariateNormalDiag of tf.contrib.distributions, which reinforcement learning uses."""

import tensorflow.compat.v1 as tf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MultivariateNormalDiag", "MultivariateNormalDiagWithSoftplusScale"]


class MultivariateNormalDiag(tf.distributions.Normal):
    """Independent normal distributions; the last axis is one event."""

    def __init__(
        self,
        loc: "Any" = None,
        scale_diag: "Any" = None,
        scale_identity_multiplier: "Any" = None,
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiag",
    ) -> None:
        with tf.name_scope(name):
            scale = scale_diag
            if scale_identity_multiplier is not None:
                added = tf.convert_to_tensor(scale_identity_multiplier)[..., None]
                if scale is None and loc is not None:
                    added *= tf.ones(tf.shape(loc)[-1:], added.dtype)
                scale = added if scale is None else scale + added
            if scale is None:
                scale = tf.ones_like(loc)
            # Often one row of scales for all events; its moments have that shape.
            self._row = tf.convert_to_tensor(scale)
            loc = tf.zeros_like(scale) if loc is None else loc + tf.zeros_like(scale)
            scale = scale + tf.zeros_like(loc)
        super().__init__(loc, tf.abs(scale), validate_args, allow_nan_stats, name)

    def _batch_shape_tensor(self) -> "Any":
        return tf.shape(self.loc)[:-1]

    def _batch_shape(self) -> "Any":
        return self.loc.shape[:-1]

    def _event_shape_tensor(self) -> "Any":
        return tf.shape(self.loc)[-1:]

    def _event_shape(self) -> "Any":
        return self.loc.shape[-1:]

    def _sample_n(self, n: "Any", seed: "Any" = None) -> "Any":
        shape = tf.concat([[n], tf.shape(self.loc)], 0)
        drawn = tf.random_normal(shape, dtype=self.loc.dtype, seed=seed)
        return drawn * self.scale + self.loc

    def _log_prob(self, x: "Any") -> "Any":
        return tf.reduce_sum(super()._log_prob(x), -1)

    def _entropy(self) -> "Any":
        return tf.reduce_sum(super()._entropy(), -1)

    def _covariance(self) -> "Any":
        return tf.matrix_diag(tf.square(self._row))

    def _variance(self) -> "Any":
        return tf.square(self._row)

    def _mean(self) -> "Any":
        return tf.identity(self.loc)

    def _stddev(self) -> "Any":
        return tf.abs(self._row)


class MultivariateNormalDiagWithSoftplusScale(MultivariateNormalDiag):
    """Its scale is the softplus of what it is given."""

    def __init__(
        self,
        loc: "Any",
        scale_diag: "Any",
        validate_args: bool = False,
        allow_nan_stats: bool = True,
        name: str = "MultivariateNormalDiagWithSoftplusScale",
    ) -> None:
        scale = tf.nn.softplus(scale_diag)
        super().__init__(loc, scale, None, validate_args, allow_nan_stats, name)


@tf.distributions.RegisterKL(MultivariateNormalDiag, MultivariateNormalDiag)
def _kl(a: "Any", b: "Any", name: "Any" = None) -> "Any":
    with tf.name_scope(name or "kl_of_diagonals"):
        ratio = tf.square(a.scale / b.scale)
        distance = tf.square((a.loc - b.loc) / b.scale)
        return 0.5 * tf.reduce_sum(ratio + distance - 1.0 - tf.log(ratio), -1)
