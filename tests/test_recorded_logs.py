"""Logs of programs that really ran and failed, each made on purpose, and what they must mean.

Those named h200 were made on an NVIDIA H200, driver 580.159.04, with PyTorch 2.11, JAX 0.11, CuPy,
Keras 3.15 and TensorFlow 2.21; those named cpu without a GPU, with TensorFlow 2.21 and Keras 3.15,
under `ulimit -v`. The name says what was done to the program.
"""

from __future__ import annotations

import pathlib

from tests.cases import each
from tests.kit import explained

FOLDER = pathlib.Path(__file__).parent / "logs"

MEANINGS = {
    "cpu-tensorflow-crash-no-memory": {"unknown"},
    "cpu-tensorflow-crash-oom-told": {"host-oom"},
    "h200-cupy-hidden": {"visible-devices-hides-gpu", "no-nvidia-driver"},
    "h200-cupy-illegal-address": {"kernel-bug-illegal-access"},
    "h200-cupy-oom": {"oom-model-too-big"},
    "h200-host-oom-numpy": {"host-oom"},
    "h200-host-oom-torch": {"host-oom"},
    "h200-jax-bad-xla-flag": {"environment-variable-ineffective"},
    "h200-jax-beside-full": {"oom-other-process"},
    "h200-jax-beside-small": {"oom-other-process"},
    "h200-jax-healthy": {"nothing-wrong"},
    "h200-jax-hidden": {"visible-devices-hides-gpu"},
    "h200-jax-hidden-range": {"visible-devices-hides-gpu"},
    "h200-jax-hidden-required": {"visible-devices-hides-gpu"},
    "h200-jax-oom-alone": {"oom-model-too-big"},
    "h200-jax-oom-beside": {"oom-other-process"},
    "h200-jax-platform-cpu": {"cpu-only-build", "platform-variable-excludes-gpu"},
    "h200-nccl-same-gpu": {"nccl-failure"},
    "h200-nvidia-smi": {"nothing-wrong"},
    "h200-tensorflow-dlopen-index-error": {"cuda-runtime-missing", "library-path-conflict"},
    "h200-tensorflow-exhausted-and-caught": {"oom-model-too-big"},
    "h200-tensorflow-hidden-after-the-import": {"visible-devices-hides-gpu"},
    "h200-tensorflow-hidden-by-an-empty-variable": {"visible-devices-hides-gpu"},
    "h200-tensorflow-hidden-index-error": {"visible-devices-hides-gpu"},
    "h200-tensorflow-oom-allocator-check": {"oom-model-too-big"},
    "h200-tensorflow-oom-autotuning": {"oom-model-too-big"},
    "h200-tensorflow-oom-eager-kernels": {"oom-model-too-big"},
    "h200-tensorflow-second-gpu": {"unknown"},
    "h200-tensorflow-session-exclusive": {"nvidia-kernel-module-state", "compute-mode-blocks"},
    "h200-tensorflow-session-full": {"oom-other-process"},
    "h200-tensorflow-session-logs-placement": {"nothing-wrong"},
    "h200-tensorflow-session-on-the-cpu": {"gpu-unused"},
    "h200-tensorflow-session-without-a-gpu": {"visible-devices-hides-gpu"},
    "h200-tensorflow-third-gpu-in-a-session": {"device-placement-nonexistent"},
    "h200-tensorflow-variable-larger-than-the-gpu": {"host-oom"},
    "h200-tensorflow-versions": {"nothing-wrong"},
    "h200-tensorflow-visible-device-list": {"invalid-device-ordinal"},
    "h200-torch-assert-embedding": {"device-assert-bad-input"},
    "h200-torch-assert-labels": {"device-assert-bad-input"},
    "h200-torch-assert-then-matmul": {"device-assert-bad-input"},
    "h200-torch-checkpoint-hidden": {"visible-devices-hides-gpu", "cpu-only-build"},
    "h200-torch-fork": {"cuda-fork-multiprocessing"},
    "h200-torch-fork-loader": {"cuda-fork-multiprocessing"},
    "h200-torch-full-then-conv": {"oom-model-too-big"},
    "h200-torch-healthy": {"nothing-wrong"},
    "h200-torch-hidden": {"visible-devices-hides-gpu"},
    "h200-torch-illegal-address": {"kernel-bug-illegal-access"},
    "h200-torch-invalid-ordinal": {"invalid-device-ordinal"},
    "h200-torch-leak": {"oom-leak-or-fragmentation"},
    "h200-torch-mixed-conv": {"tensor-device-mismatch"},
    "h200-torch-mixed-devices": {"tensor-device-mismatch"},
    "h200-torch-not-gpu-shape": {"not-gpu"},
    "h200-torch-oom-beside": {"oom-other-process"},
    "h200-torch-oom-limit": {"oom-model-too-big"},
    "h200-torch-oom-one-request": {"oom-model-too-big"},
    "h200-torch-oom-tiny-beside": {"oom-other-process"},
    "h200-torch-oom-training": {"oom-model-too-big"},
}
"""Two answers where the log alone cannot tell; the second must then be said as well."""


def test_every_log_is_here() -> None:
    assert {path.stem for path in FOLDER.glob("*.log")} == MEANINGS.keys()


@each("name", MEANINGS)
def test_a_log_means_what_was_done(name: str) -> None:
    explanation = explained((FOLDER / f"{name}.log").read_text(encoding="utf-8"))
    causes = [finding.cause for finding in explanation.root_causes]
    answer = causes[0] if causes else explanation.verdict
    assert answer in MEANINGS[name], (explanation.verdict, causes)
    if len(MEANINGS[name]) > 1:
        assert MEANINGS[name] <= set(causes), "the log does not decide, so both are to be said"
        assert explanation.root_causes[0].ask
