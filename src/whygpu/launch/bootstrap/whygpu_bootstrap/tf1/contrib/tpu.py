"""tf.contrib.tpu without a TPU: TPUEstimator(use_tpu=False) is an Estimator with batch sizes.

Programs that were written for TPUs choose by a flag, and run on other devices in this way.
"""

import collections
import copy

import tensorflow.compat.v1 as tf

from whygpu_bootstrap.tf1.estimator import estimator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["InputPipelineConfig", "RunConfig", "TPUConfig", "TPUEstimator", "TPUEstimatorSpec"]


class InputPipelineConfig:
    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class TPUConfig:
    """What only a TPU reads."""

    def __init__(
        self,
        iterations_per_loop: "Any" = 2,
        num_shards: "Any" = None,
        num_cores_per_replica: "Any" = None,
        per_host_input_for_training: "Any" = True,
        **others: "Any",
    ) -> None:
        self.iterations_per_loop = iterations_per_loop
        self.num_shards = num_shards
        self.num_cores_per_replica = num_cores_per_replica
        self.per_host_input_for_training = per_host_input_for_training
        vars(self).update(others)


class RunConfig(estimator.RunConfig):
    def __init__(
        self,
        tpu_config: "Any" = None,
        evaluation_master: "Any" = None,
        master: "Any" = None,
        cluster: "Any" = None,
        **others: "Any",
    ) -> None:
        super().__init__(**others)
        self.tpu_config = tpu_config or TPUConfig()
        self.evaluation_master = evaluation_master or master or ""
        self.master = master or ""
        self.cluster = cluster


_SPEC = collections.namedtuple(  # type: ignore[name-match]
    "TPUEstimatorSpec",
    "mode predictions loss train_op eval_metrics export_outputs scaffold_fn host_call "
    "training_hooks evaluation_hooks prediction_hooks",
)
_SPEC.__new__.__defaults__ = (None,) * 10


class TPUEstimatorSpec(_SPEC):
    """What a model function for TPUs returns: functions, where an Estimator gets their results."""

    def as_estimator_spec(self) -> "Any":
        hooks = list(self.training_hooks or ())
        if self.host_call is not None:
            hooks.append(_HostCall(_called(self.host_call)))
        return estimator.EstimatorSpec(
            self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=None if self.eval_metrics is None else _called(self.eval_metrics),
            export_outputs=self.export_outputs,
            training_hooks=hooks,
            scaffold=self.scaffold_fn() if self.scaffold_fn is not None else None,
            evaluation_hooks=self.evaluation_hooks,
            prediction_hooks=self.prediction_hooks,
        )


def _called(pair: "Any") -> "Any":
    """(function, tensors by position or by name)."""
    function, tensors = pair
    return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


class _HostCall(tf.train.SessionRunHook):
    """Runs what writes summaries with each step."""

    def __init__(self, made: "Any") -> None:
        self._made = made

    def before_run(self, run_context: "Any") -> "Any":
        return tf.train.SessionRunArgs(self._made)


class TPUEstimator(estimator.Estimator):
    """Passes the batch size of each mode as params["batch_size"]."""

    def __init__(
        self,
        model_fn: "Any" = None,
        model_dir: "Any" = None,
        config: "Any" = None,
        params: "Any" = None,
        use_tpu: bool = True,
        train_batch_size: "Any" = None,
        eval_batch_size: "Any" = None,
        predict_batch_size: "Any" = None,
        batch_axis: "Any" = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: "Any" = None,
        **others: "Any",
    ) -> None:
        if use_tpu:
            raise NotImplementedError(
                "TPUEstimator under --tf1 computes on the CPU and on GPUs: use_tpu=False"
            )
        if "batch_size" in (params or {}):
            raise ValueError("batch_size are reserved keys but existed in params.")
        super().__init__(model_fn, model_dir, config or RunConfig(), params, warm_start_from)
        modes = estimator.ModeKeys
        self._batch_sizes = {
            modes.TRAIN: train_batch_size,
            modes.EVAL: eval_batch_size,
            modes.PREDICT: predict_batch_size,
        }

    def _offered(self, mode: "Any") -> "dict[str, Any]":
        offered = super()._offered(mode)
        extra = {"use_tpu": False}
        if self._batch_sizes[mode] is not None:
            extra["batch_size"] = self._batch_sizes[mode]
        return dict(offered, params=_with(self._params, extra))

    def _spec(self, made: "Any") -> "Any":
        return made.as_estimator_spec() if isinstance(made, TPUEstimatorSpec) else made


def _with(params: "Any", extra: "dict[str, Any]") -> "Any":
    if isinstance(params, dict):
        return dict(params, **extra)
    # Each mode has its own: another one may have no batch size.
    params = copy.deepcopy(params)
    for name, value in extra.items():
        if hasattr(params, "add_hparam"):
            change = params.set_hparam if hasattr(params, name) else params.add_hparam
            change(name, value)
    return params
