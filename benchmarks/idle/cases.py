"""The planted programs: what is wrong with each, and where it runs."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.profile import Category


class Planted(NamedTuple):
    program: str
    target: str
    """The framework environment (tests.targets)."""
    bottleneck: Category | None
    """What the answer has to name; None for a healthy program."""
    backend: str = ""
    """For Keras."""


PLANTED = (
    Planted("torch_slow_decoding", "torch", "input"),
    Planted("torch_slow_storage", "torch", "input"),
    Planted("torch_one_worker", "torch", "input"),
    Planted("torch_restarted_workers", "torch", "input"),
    Planted("torch_own_code", "torch", "program"),
    Planted("torch_evaluation", "torch", "evaluation"),
    Planted("torch_checkpoints", "torch", "checkpointing"),
    Planted("torch_recompiled", "torch", "compilation"),
    Planted("torch_healthy", "torch", None),
    Planted("torch_healthy_item", "torch", None),
    Planted("keras_slow_dataset", "keras-all", "input", backend="tensorflow"),
    Planted("keras_slow_dataset", "keras-all", "input", backend="jax"),
    Planted("keras_slow_dataset", "keras-all", "input", backend="torch"),
    Planted("keras_slow_tf_data", "keras-all", "input", backend="tensorflow"),
    Planted("keras_callbacks", "keras-all", "logging", backend="tensorflow"),
    Planted("keras_evaluation", "keras-all", "evaluation", backend="tensorflow"),
    Planted("keras_evaluation", "keras-all", "evaluation", backend="torch"),
    Planted("keras_healthy", "keras-all", None, backend="tensorflow"),
    Planted("keras_healthy", "keras-all", None, backend="jax"),
    Planted("keras_healthy", "keras-all", None, backend="torch"),
    Planted("jax_slow_generator", "jax", "input"),
    Planted("jax_retraced", "jax", "compilation"),
    Planted("jax_own_code", "jax", "program"),
    Planted("jax_healthy", "jax", None),
    Planted("tensorflow_retraced", "keras-all", "compilation"),
    Planted("tensorflow_healthy", "keras-all", None),
    Planted("session_own_code", "tensorflow-gpu-1.15", "program"),
    Planted("session_own_code", "keras-all", "program"),
)
