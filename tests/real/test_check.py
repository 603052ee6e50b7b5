"""`whygpu check` on real frameworks: what it says is what the framework does there."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import jsonschema
import pytest

import whygpu
from tests.lab.driver import NoCompiler, StubDriver, StubGpu
from tests.patience import PATIENCE
from tests.targets import python_of

SCHEMA = json.loads(
    (pathlib.Path(whygpu.__path__[0]) / "schemas" / "check.schema.json").read_text()
)
QUIET = {"CUDA_VISIBLE_DEVICES": None, "KERAS_BACKEND": None, "JAX_PLATFORMS": None}


def check(target: str, *options: str, **environ: str | None) -> tuple[dict[str, Any], int]:
    """The report and the exit code; variables set to None are taken away."""
    variables: dict[str, str | None] = {**os.environ, **QUIET, **environ}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "whygpu",
            "check",
            "--json",
            "--python",
            python_of(target),
            *options,
        ],
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode in (0, 1, 4), done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(report, SCHEMA)
    return report, done.returncode


def verdicts(report: dict[str, Any]) -> dict[str, str]:
    return {item["name"]: item["verdict"] for item in report["frameworks"]}


def roots(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(finding["cause"], finding["subject"]) for finding in report["root_causes"]]


@pytest.fixture
def stub(tmp_path: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A machine that seems to have a driver and one GPU."""
    cache = tmp_path_factory.getbasetemp().parent / "stub-driver"
    try:
        return StubDriver(gpus=(StubGpu(),)).install(tmp_path / "driver", cache=cache)
    except NoCompiler as reason:
        pytest.skip(str(reason))


no_gpu_here = pytest.mark.skipif(
    pathlib.Path("/dev/nvidia0").exists(), reason="this machine has a GPU"
)


@no_gpu_here
@pytest.mark.parametrize(
    ("target", "installed"),
    [
        ("tensorflow-2.21", {"tensorflow", "keras"}),
        ("jax", {"jax", "keras"}),
        ("torch", {"torch", "keras"}),
        ("tensorflow-gpu-1.15", {"tensorflow", "keras"}),
    ],
)
def test_healthy_frameworks_on_a_machine_without_a_gpu(
    target: str, installed: set[str], tmp_path: pathlib.Path
) -> None:
    backend = {"jax": "jax", "torch": "torch"}.get(target)
    report, code = check(target, KERAS_BACKEND=backend, HOME=str(tmp_path))
    found = verdicts(report)
    assert installed - {"keras"} <= found.keys() <= installed
    assert set(found.values()) == {"cpu"}
    assert report["verdict"] == "no-gpu"
    assert report["root_causes"] == []
    assert report["undetermined"] == []
    assert code == 0
    assert not (tmp_path / ".keras").exists(), "the probe left settings of Keras"


@no_gpu_here
def test_tensorflow_1_12_does_not_import_without_its_libraries() -> None:
    """It links CUDA: without a driver and CUDA 9.0 the import itself fails."""
    report, code = check("tensorflow-gpu-1.12")
    assert verdicts(report)["tensorflow"] == "broken"
    assert report["verdict"] == "broken"
    assert code == 1
    said = json.dumps(report["root_causes"])
    assert "libcublas.so.9.0" in said or "libcuda.so.1" in said


@no_gpu_here
def test_without_probes_it_says_what_stays_unknown() -> None:
    report, code = check("torch", "--no-probe", KERAS_BACKEND="torch")
    assert verdicts(report)["torch"] == "cpu"
    assert any("--no-probe" in item["reason"] for item in report["undetermined"])
    assert code == 4


def test_tensorflow_with_a_driver_and_without_cuda_libraries(stub: dict[str, str]) -> None:
    report, code = check("tensorflow-2.21", **stub)
    assert verdicts(report)["tensorflow"] == "cpu"
    # Where a CUDA toolkit of another release lies about, that is what is wrong.
    assert roots(report)[0][0] in ("cuda-runtime-missing", "cuda-version-mismatch")
    assert "libcudart.so.12" in report["root_causes"][0]["message"]
    assert code == 1


def test_the_official_install_of_2_21_misses_one_folder(stub: dict[str, str]) -> None:
    """TensorFlow says "Cannot dlopen some GPU libraries"; we say which one and why."""
    report, code = check("tensorflow-2.21-cuda", "--no-probe", **stub)
    assert roots(report)[0] == ("library-path-conflict", "tensorflow")
    finding = report["root_causes"][0]
    assert "libcusolver.so.11" in finding["message"]
    assert "nvidia/cusolver/lib" in json.dumps(finding["remedies"])
    assert verdicts(report) == {"tensorflow": "cpu", "keras": "cpu"}
    assert code == 1


def test_a_hidden_gpu_is_named_as_the_reason(stub: dict[str, str]) -> None:
    report, _ = check(
        "jax", "--no-probe", KERAS_BACKEND="jax", **{**stub, "CUDA_VISIBLE_DEVICES": ""}
    )
    assert "visible-devices-hides-gpu" in [cause for cause, _ in roots(report)]


def test_keras_on_a_backend_that_is_not_installed() -> None:
    report, code = check("tensorflow-2.21", KERAS_BACKEND="jax")
    assert verdicts(report)["keras"] == "broken"
    assert ("keras-backend-missing", "keras") in roots(report)
    assert code == 1
