"""The probes, in real environments; on a machine without a GPU, or with a stub driver."""

from __future__ import annotations

import functools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.lab.driver import StubDriver
from tests.patience import stopped_in_time
from tests.targets import python_of
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.probe import Probe, ProbeName
from whygpu.probes.probe_process import ProbeProcess
from whygpu.probes.runner import run_probes

HIDDEN = {"CUDA_VISIBLE_DEVICES": "-1"}
"""So that a test of the CPU's side says the same on a machine with a GPU."""


def probe(
    target: str, name: ProbeName, environ: Mapping[str, str] = HIDDEN, timeout: float = 120.0
) -> Probe:
    clean = {key: value for key, value in os.environ.items() if key != "KERAS_BACKEND"}
    (result,) = run_probes(
        python_of(target),
        [name],
        timeout=timeout,
        environ={**clean, **environ},
        memory_available=None,
    )
    return result


class Healthy(NamedTuple):
    """A backend and Keras on it, as their probes saw them on the CPU, each in its own process."""

    backend: Probe
    keras: Probe
    left_at_home: list[str]


def healthy(target: str, backend: ProbeName) -> Healthy:
    return _healthy(python_of(target), backend)


@functools.cache
def _healthy(python: str, backend: ProbeName) -> Healthy:
    with tempfile.TemporaryDirectory() as home:
        of_backend, of_keras = both(python, backend, None, HOME=home)
        return Healthy(of_backend, of_keras, os.listdir(home))


def both(
    python: str, backend: ProbeName, keras_host: ProbeName | None, **environ: str
) -> tuple[Probe, ...]:
    """The probes of a backend and of Keras, in one process if the backend is Keras's host."""
    return run_probes(
        python,
        (backend, "keras"),
        environ={**os.environ, **HIDDEN, "KERAS_BACKEND": backend, **environ},
        memory_available=None,
        keras_host=keras_host,
    )


Install = Callable[[StubDriver], dict[str, str]]


@pytest.fixture
def install(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Gives the environment of a machine with a driver that can list GPUs and compute nothing."""
    if shutil.which("gcc") is None:
        pytest.skip("the stub driver is compiled by gcc, which is not on the PATH")
    cache = tmp_path_factory.getbasetemp() / "stub-driver"
    return lambda driver: driver.install(tmp_path / "driver", cache=cache)


def value(observed: Observed[str]) -> str:
    assert isinstance(observed, Known)
    return observed.value


def work(probe: Probe) -> list[tuple[str, str, str, str]]:
    """Every operation as (what, asked for, ran on, kind), all of them correct."""
    for operation in probe.operations:
        assert operation.correct == Known(True, f"{probe.name} probe")
    return [
        (operation.operation, operation.requested, value(operation.ran_on), operation.kind)
        for operation in probe.operations
    ]


def device_names(probe: Probe) -> list[str]:
    assert isinstance(probe.devices, Known)
    return [device.name for device in probe.devices.value]


@pytest.mark.parametrize(
    ("target", "version", "build"),
    [
        ("tensorflow-2.21", "2.21.0", ("build cuda_version", "12.5.1")),
        ("tensorflow-gpu-1.15", "1.15.5", ("build cuda_version_number", "10")),
    ],
)
def test_tensorflow_on_the_cpu(target: str, version: str, build: tuple[str, str]) -> None:
    result = healthy(target, "tensorflow").backend
    assert (result.ended, result.how) == ("finished", "")
    assert result.version == Known(version, "tensorflow probe")
    assert build in result.facts
    assert result.fact("built with cuda") == "True"
    assert device_names(result)[0] == "CPU:0"
    assert not any(name.startswith("GPU") for name in device_names(result))
    assert work(result) == [
        ("matmul", "CPU:0", "CPU:0", "cpu"),
        ("convolution", "CPU:0", "CPU:0", "cpu"),
        ("matmul", "default", "CPU:0", "cpu"),
    ]
    assert any("libcuda.so.1" in line for line in result.log)


def test_tensorflow_that_needs_cuda_to_be_imported() -> None:
    result = probe("tensorflow-gpu-1.12", "tensorflow")
    assert (result.ended, result.stage) == ("exception", "import")
    missing = "ImportError: libcublas.so.9.0: cannot open shared object file"
    assert result.how.startswith(missing)
    assert any(line.startswith(missing) for line in result.traceback)
    assert isinstance(result.version, Unknown)


def test_tensorflow_names_the_library_that_keeps_it_from_the_gpu(install: Install) -> None:
    result = probe("tensorflow-2.21-cuda", "tensorflow", install(StubDriver()))
    assert result.ended == "finished"
    assert device_names(result) == ["CPU:0"]
    (line,) = (line for line in result.log if "Could not load dynamic library" in line)
    assert "'libcusolver.so.11'" in line


def test_tensorflow_that_fails_on_the_gpu_it_lists(install: Install) -> None:
    python = Path(python_of("tensorflow-2.21-cuda"))
    (folder,) = python.parent.parent.glob("lib/python3*/site-packages/nvidia/cusolver/lib")
    environ = install(StubDriver())
    environ["LD_LIBRARY_PATH"] += f":{folder}"
    result = probe("tensorflow-2.21-cuda", "tensorflow", environ)
    assert device_names(result) == ["CPU:0", "GPU:0"]
    assert (result.ended, result.stage) == ("exception", "initialise")
    assert "cudaGetDevice() failed" in result.how


def test_jax_on_the_cpu() -> None:
    result = healthy("jax", "jax").backend
    assert (result.ended, result.how) == ("finished", "")
    assert device_names(result) == ["cpu:0"]
    assert result.fact("default backend") == "cpu"
    assert work(result) == [
        ("matmul", "cpu:0", "cpu:0", "cpu"),
        ("convolution", "cpu:0", "cpu:0", "cpu"),
        ("matmul", "default", "cpu:0", "cpu"),
    ]


def test_jax_says_why_its_plugin_failed_and_still_prints_it() -> None:
    result = probe("jax-cuda12", "jax")
    assert result.ended == "finished"
    messages = [text for name, text in result.facts if name == "backend message"]
    assert any("xla_cuda12" in text and "cuInit(0) failed" in text for text in messages)
    assert any("cuInit(0) failed" in line for line in result.log)


def test_jax_with_a_platform_it_does_not_have() -> None:
    result = probe("jax", "jax", {"JAX_PLATFORMS": "cuda"})
    assert (result.ended, result.stage) == ("exception", "devices")
    assert result.fact("jax_platforms") == "cuda"
    # JAX 0.12 says no more than AssertionError here; the probe says where.
    assert len(result.how.split()) > 1


def test_torch_on_the_cpu() -> None:
    result = healthy("torch", "torch").backend
    assert (result.ended, result.how) == ("finished", "")
    assert value(result.version).endswith("+cpu")
    assert result.fact("version.cuda") == "None"
    assert result.fact("torch.cuda.is_available") == "False"
    assert "not compiled with CUDA" in (result.fact("torch.cuda.init") or "")
    assert work(result) == [
        ("matmul", "cpu", "cpu", "cpu"),
        ("convolution", "cpu", "cpu", "cpu"),
    ]


@pytest.mark.parametrize(
    ("target", "backend", "module", "device"),
    [
        ("tensorflow-2.21", "tensorflow", "keras", "CPU:0"),
        ("jax", "jax", "keras", "cpu:0"),
        ("torch", "torch", "keras", "cpu"),
        ("tensorflow-gpu-1.15", "tensorflow", "tensorflow.keras", "CPU:0"),
    ],
)
def test_keras_trains_on_its_backend(
    target: str, backend: ProbeName, module: str, device: str
) -> None:
    found = healthy(target, backend)
    result = found.keras
    assert (result.ended, result.how) == ("finished", "")
    assert (result.fact("module"), result.fact("backend")) == (module, backend)
    assert device in device_names(result)
    assert work(result) == [("training-step", "default", device, "cpu")]
    assert result.fact("weights on") == device
    assert found.left_at_home == []


@pytest.mark.parametrize(
    ("target", "backend"),
    [
        ("tensorflow-2.21", "tensorflow"),
        pytest.param("jax", "jax", marks=pytest.mark.full),
        ("torch", "torch"),
        ("tensorflow-gpu-1.15", "tensorflow"),
    ],
)
def test_keras_and_its_backend_tell_the_same_in_one_process_as_in_two(
    target: str, backend: ProbeName, monkeypatch: pytest.MonkeyPatch
) -> None:
    second_probes: list[str] = []
    run_next = ProbeProcess.run_next

    def noted(process: ProbeProcess, name: ProbeName, *rest: Any, **options: Any) -> None:
        second_probes.append(name)
        run_next(process, name, *rest, **options)

    apart = healthy(target, backend)
    monkeypatch.setattr(ProbeProcess, "run_next", noted)
    together = both(python_of(target), backend, backend)
    assert second_probes == ["keras"]
    assert list(map(without_times, together)) == list(map(without_times, apart[:2]))


def without_times(probe: Probe) -> Probe:
    """What two runs of one probe have in common: no times, numbers of processes and addresses."""
    lines = (re.sub(r" *(0x[0-9a-f]+|\d[\d.]*)", "N", line) for line in probe.log)
    return probe._replace(seconds=0.0, log=tuple(lines))


def test_keras_on_numpy_computes_and_does_not_train(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "KERAS_BACKEND": "numpy"}
    result = probe("keras-all", "keras", {**HIDDEN, **home})
    assert (result.ended, result.fact("backend")) == ("finished", "numpy")
    assert work(result) == [("forward-pass", "default", "cpu", "cpu")]


def test_keras_reads_the_users_configuration(tmp_path: Path) -> None:
    (tmp_path / ".keras").mkdir()
    (tmp_path / ".keras" / "keras.json").write_text('{"backend": "torch"}')
    result = probe("torch", "keras", {**HIDDEN, "HOME": str(tmp_path)})
    assert (result.ended, result.fact("backend")) == ("finished", "torch")


def test_keras_without_its_backend() -> None:
    result = probe("torch", "keras", {**HIDDEN, "KERAS_BACKEND": "jax"})
    assert (result.ended, result.stage) == ("exception", "import")
    assert "ModuleNotFoundError: No module named 'jax'" in result.traceback


def test_cuda_without_a_driver(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"")
    result = probe("torch", "cuda", {"LD_LIBRARY_PATH": str(tmp_path)})
    assert result.ended == "finished"
    assert isinstance(result.devices, Absent)
    assert "file too short" in (result.fact("libcuda.so.1") or "")


def test_cuda_with_a_driver_and_one_gpu(install: Install) -> None:
    result = probe("tensorflow-gpu-1.12", "cuda", install(StubDriver()))
    assert (result.ended, result.fact("cuInit")) == ("finished", "0 CUDA_SUCCESS")
    assert value(result.version) == "13.0"
    assert device_names(result) == ["cuda:0"]


@pytest.mark.parametrize(
    ("code", "text", "devices"),
    [
        (100, "100 CUDA_ERROR_NO_DEVICE", Known((), "cuda probe")),
        (
            803,
            "803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
            Unknown("cuInit: 803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        ),
    ],
)
def test_cuda_that_does_not_initialise(
    install: Install, code: int, text: str, devices: Observed[tuple[object, ...]]
) -> None:
    result = probe("torch", "cuda", install(StubDriver(cu_init=code)))
    assert (result.ended, result.fact("cuInit")) == ("finished", text)
    assert result.devices == devices


def test_cuda_that_hangs(install: Install) -> None:
    environ = install(StubDriver(hang="cuInit"))
    result, limit = stopped_in_time(
        lambda limit: probe("torch", "cuda", environ, timeout=limit),
        lambda result: (result.ended, result.stage) == ("timed-out", "cuInit"),
    )
    assert (result.ended, result.how, result.stage) == ("timed-out", f"{limit:g} s", "cuInit")
    assert value(result.version) == "13.0"
