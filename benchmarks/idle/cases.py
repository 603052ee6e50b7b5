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
    says: str = ""
    """A word that the answer has to contain beside that."""
    has_cure: bool = True
    """With CURED, the program does the same work without the bottleneck."""
    other_cure: str = ""
    """A part of the text of the change that CURED makes, if it is not the usual one."""

    @property
    def framework(self) -> str:
        """The one that makes the steps."""
        return self.backend or {"torch": "torch", "jax": "jax"}.get(self.target, "tensorflow")

    @property
    def planted(self) -> str:
        return self.bottleneck or self.says or "nothing"

    @property
    def is_curable(self) -> bool:
        return self.has_cure and bool(self.bottleneck or self.says)

    @property
    def cure(self) -> str:
        """A part of the text of the change that CURED makes; empty for the first that is offered.

        An answer may offer several changes, and the first is not always the one that was made.
        """
        if self.other_cure or self.bottleneck is None:
            return self.other_cure
        return _CURES.get(self.bottleneck, "")


_CURES: dict[Category, str] = {
    "program": "take this code out of the step",
    "evaluation": "evaluate half as often",
    "checkpointing": "save a tenth as often",
    "logging": "log every tenth step",
    "copies": "pin_memory=True",
    "synchronisation": "do not wait for the GPU",
    "cpu-operations": "run these operations on the GPU",
}

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

KERAS_BACKENDS = ("tensorflow", "jax", "torch")

PLANTED_ON_GPU = (
    *(Planted("keras_healthy", "keras-all", None, name) for name in KERAS_BACKENDS),
    Planted("tensorflow_healthy", "keras-all", None),
    Planted("session_healthy", "keras-all", None),
    *(Planted("keras_slow_dataset", "keras-all", "input", name) for name in KERAS_BACKENDS),
    Planted("keras_slow_tf_data", "keras-all", "input", "tensorflow"),
    *(Planted("keras_callbacks", "keras-all", "logging", name) for name in KERAS_BACKENDS),
    Planted("keras_eagerly", "keras-all", "launches", "tensorflow"),
    Planted("keras_small_batch", "keras-all", "launches", "tensorflow"),
    Planted("tensorflow_reads_loss", "keras-all", "synchronisation"),
    Planted("tensorflow_retraced", "keras-all", "compilation"),
    Planted("tensorflow_own_code", "keras-all", "program"),
    Planted("tensorflow_cpu_operation", "keras-all", "cpu-operations"),
    Planted("session_own_code", "keras-all", "program"),
    *(Planted("keras_evaluation", "keras-all", "evaluation", name) for name in KERAS_BACKENDS),
    *(Planted("keras_checkpoints", "keras-all", "checkpointing", name) for name in KERAS_BACKENDS),
    Planted("torch_float32", "torch", None, says="TF32", other_cure="TF32"),
    Planted("torch_own_code", "torch", "program"),
    Planted("torch_small_kernels", "torch", "launches"),
    Planted("jax_without_jit", "jax", "launches"),
    Planted("jax_retraced", "jax", "compilation"),
    Planted("jax_copies", "jax", "copies", has_cure=False),
    Planted("torch_recompiled", "torch", "compilation"),
    Planted("jax_reads_loss", "jax", "synchronisation"),
    Planted("torch_slow_decoding", "torch", "input"),
    Planted("jax_slow_generator", "jax", "input"),
    Planted("torch_checkpoints", "torch", "checkpointing"),
    Planted("torch_healthy", "torch", None),
    Planted("torch_healthy_item", "torch", None),
    Planted("jax_healthy", "jax", None),
    Planted("torch_item", "torch", "synchronisation"),
    Planted("torch_synchronize", "torch", "synchronisation"),
    Planted("torch_evaluation", "torch", "evaluation"),
    Planted(
        "torch_other_process", "torch", None, says="another process", other_cure="no other process"
    ),
    Planted("torch_one_worker", "torch", "input"),
    Planted("torch_small_batch", "torch", "launches", has_cure=False),
    Planted("torch_cpu_operation", "torch", "cpu-operations"),
    Planted("torch_pageable", "torch", "copies"),
    Planted("jax_own_code", "jax", "program"),
)
"""Programs in gpu_programs/, for `--device gpu`. The most informative come first, because time on a
GPU may end: what has never been measured there, then what was predicted badly, then the rest."""
