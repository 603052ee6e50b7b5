"""Snapshots recorded on real machines come out as they did there.

The h200 ones were measured on an NVIDIA H200, driver 580.159.04, with Keras 3.15, JAX 0.11 (CUDA
13), PyTorch 2.11 (CUDA 13), CuPy, Numba and the CPU build of ONNX Runtime in one environment; those
with TensorFlow in their names with TensorFlow 2.21 and Keras 3.15 in another.
"""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.test_privacy import ALICE
from whygpu import diagnose, load_snapshot
from whygpu.model.report import Report
from whygpu.privacy import Redactor

FOLDER = pathlib.Path(__file__).parent / "machines"
RECORDED = sorted(FOLDER.glob("*.json"))

ALL_ON_GPU = {"keras": "gpu", "jax": "gpu", "torch": "gpu"}
ALL_ON_CPU = {"keras": "cpu", "jax": "cpu", "torch": "cpu"}
KERAS_ON_GPU = {"keras": "gpu", "tensorflow": "gpu"}
KERAS_ON_CPU = {"keras": "cpu", "tensorflow": "cpu"}


def judged(name: str) -> Report:
    return diagnose(load_snapshot(str(FOLDER / f"{name}.json")))


@pytest.mark.parametrize(
    ("name", "verdict", "frameworks", "roots", "code"),
    [
        ("h200-healthy-keras-jax", "gpu", ALL_ON_GPU, [], 0),
        ("h200-healthy-keras-torch", "gpu", ALL_ON_GPU, [], 0),
        ("h200-hidden-empty", "cpu", ALL_ON_CPU, ["visible-devices-hides-gpu"], 1),
        ("h200-hidden-out-of-range", "cpu", ALL_ON_CPU, ["visible-devices-hides-gpu"], 1),
        (
            "h200-keras-jax-on-cpu",
            "cpu",
            {"keras": "cpu", "jax": "cpu", "torch": "gpu"},
            ["platform-variable-excludes-gpu"],
            1,
        ),
        ("h200-memory-held", "gpu", ALL_ON_GPU, ["oom-other-process"], 1),
        ("h200-old-compat-library", "cpu", ALL_ON_CPU, ["driver-library-version-mismatch"], 1),
        ("h200-jax-cpu-build", "cpu", {"jax": "cpu"}, ["cpu-only-build"], 1),
        ("h200-tensorflow-healthy", "gpu", KERAS_ON_GPU, [], 0),
        ("h200-tensorflow-hidden", "cpu", KERAS_ON_CPU, ["visible-devices-hides-gpu"], 1),
        ("h200-tensorflow-cusolver", "cpu", KERAS_ON_CPU, ["library-path-conflict"], 1),
        (
            "h200-tensorflow-cudnn8",
            "cpu",
            KERAS_ON_CPU,
            ["library-path-conflict", "cudnn-version-mismatch"],
            1,
        ),
        # A cuDNN 9 of the system serves in place of the wheel of cuDNN 8.
        ("h200-tensorflow-system-cudnn", "cpu", KERAS_ON_CPU, ["library-path-conflict"], 1),
    ],
)
def test_a_recorded_machine(
    name: str, verdict: str, frameworks: dict[str, str], roots: list[str], code: int
) -> None:
    report = judged(name)
    assert report.verdict == verdict
    seen = {item.name: item.verdict for item in report.frameworks}
    assert {key: seen[key] for key in frameworks} == frameworks
    assert [f.cause for f in report.root_causes if f.severity != "info"] == roots
    assert report.undetermined == ()
    assert report.exit_code == code


def test_every_recording_is_tested() -> None:
    (mark,) = test_a_recorded_machine.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in mark.args[1]} == {path.stem for path in RECORDED}


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_cpu_build_of_onnx_runtime_is_recognised(path: pathlib.Path) -> None:
    found = [item for item in judged(path.stem).frameworks if item.name == "onnxruntime"]
    alone = path.stem.startswith(("h200-tensorflow", "h200-jax"))
    assert [(item.verdict, item.because) for item in found] == ([] if alone else [("cpu", ())])


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_recording_holds_nothing_private(path: pathlib.Path) -> None:
    data = json.loads(path.read_text())
    assert Redactor(ALICE).tree(data) == data
