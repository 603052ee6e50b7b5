"""Real installations, read without importing them, against what is known of them."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess

import pytest

from tests.lab.driver import NoCompiler, StubDriver
from tests.patience import PATIENCE
from tests.targets import python_of
from whygpu.collectors import frameworks, interpreter, packages, requirements
from whygpu.collectors.loader import LoaderProcess
from whygpu.host.local import LocalHost
from whygpu.model.libraries import Resolution
from whygpu.model.observed import Absent, Known, need
from whygpu.model.target import Framework, FrameworkName
from whygpu.tables.distributions import normalised


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """No setting of whoever runs the tests decides their result."""
    for name in list(os.environ):
        if name.startswith(("KERAS_", "TF_", "JAX_", "LD_", "CUDA", "PYTHON")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))


@pytest.fixture
def driver(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> pathlib.Path:
    """A driver's libraries on LD_LIBRARY_PATH, for this process and those it starts."""
    folder = tmp_path_factory.mktemp("driver")
    try:
        environment = StubDriver().install(folder, cache=folder.parent)
    except NoCompiler as error:
        pytest.skip(str(error))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return folder


def collect(python: str) -> tuple[Framework, ...]:
    host = LocalHost()
    seen = interpreter.collect(host, python)
    found = packages.collect(host, need(seen))
    return need(frameworks.collect(host, seen, found, lambda: LoaderProcess(host, python)))


def only(name: FrameworkName, python: str) -> Framework:
    (framework,) = (each for each in collect(python) if each.name == name)
    return framework


def answers(framework: Framework) -> dict[str, str]:
    return {each.library: each.outcome for each in need(framework.libraries)}


def test_tensorflow_2_21() -> None:
    seen = only("tensorflow", python_of("tensorflow-2.21"))
    assert (seen.distribution, seen.version) == ("tensorflow", "2.21.0")
    assert need(seen.build.kind) == "cuda"
    assert (need(seen.build.cuda), need(seen.build.cudnn)) == ("12.5.1", "9")
    assert need(seen.build.architectures) == (
        "sm_60",
        "sm_70",
        "sm_80",
        "sm_89",
        "sm_90",
        "compute_90",
    )
    assert need(seen.build.cpu_features) == ("avx",)


def test_tensorflow_2_21_with_its_cuda_wheels_misses_one_library(driver: pathlib.Path) -> None:
    seen = only("tensorflow", python_of("tensorflow-2.21-cuda"))
    assert answers(seen) == {
        "libcudart.so.12": "loads",
        "libcuda.so.1": "loads",
        "libnvidia-ml.so.1": "loads",
        "libcudnn.so.9": "loads",
        "libcublas.so.12": "loads",
        "libcublasLt.so.12": "loads",
        "libcufft.so.11": "loads",
        "libcusolver.so.11": "not-found",
        "libcusparse.so.12": "loads",
    }
    (missing,) = (each for each in need(seen.libraries) if each.outcome == "not-found")
    assert missing.required
    assert missing.requester.endswith("libtensorflow_framework.so.2")
    assert not any("cusolver" in folder.path for folder in missing.searched)


def test_naming_its_folder_repairs_that(
    driver: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = python_of("tensorflow-2.21-cuda")
    (folder,) = pathlib.Path(python).parent.parent.glob(
        "lib/python3*/site-packages/nvidia/cusolver/lib"
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{os.environ['LD_LIBRARY_PATH']}:{folder}")
    assert set(answers(only("tensorflow", python)).values()) == {"loads"}


def test_tensorflow_gpu_1_15() -> None:
    seen = only("tensorflow", python_of("tensorflow-gpu-1.15"))
    assert (seen.distribution, seen.version) == ("tensorflow-gpu", "1.15.5")
    assert need(seen.build.kind) == "cuda"
    assert (need(seen.build.cuda), need(seen.build.cudnn)) == ("10.0", "7")
    architectures = need(seen.build.architectures)
    assert {"sm_35", "sm_70", "compute_70"} <= set(architectures)
    assert list(answers(seen)) == [
        "libcudart.so.10.0",
        "libcuda.so.1",
        "libcublas.so.10.0",
        "libcufft.so.10.0",
        "libcurand.so.10.0",
        "libcusolver.so.10.0",
        "libcusparse.so.10.0",
        "libcudnn.so.7",
    ]


def test_tensorflow_gpu_1_12_shows_all_that_it_is_linked_with() -> None:
    seen = only("tensorflow", python_of("tensorflow-gpu-1.12"))
    assert (seen.distribution, seen.version) == ("tensorflow-gpu", "1.12.0")
    assert (need(seen.build.cuda), need(seen.build.cudnn)) == ("9.0", "7")
    assert set(answers(seen)) == {
        "libcublas.so.9.0",
        "libcuda.so.1",
        "libcudnn.so.7",
        "libcufft.so.9.0",
        "libcurand.so.9.0",
        "libcudart.so.9.0",
        "libcusolver.so.9.0",
    }
    assert all(each.required for each in need(seen.libraries))


def test_jax_without_a_plugin() -> None:
    seen = only("jax", python_of("jax"))
    assert need(seen.build.kind) == "cpu"
    assert seen.plugins == ()
    assert isinstance(seen.libraries, Absent)


def test_jax_with_its_cuda_plugin(driver: pathlib.Path) -> None:
    seen = only("jax", python_of("jax-cuda12"))
    assert need(seen.build.kind) == "cuda"
    assert need(seen.build.cuda) == "12"
    assert need(seen.build.cudnn).startswith("9.")
    architectures = need(seen.build.architectures)
    assert {"sm_90", "compute_120"} <= set(architectures)
    assert [each.name for each in seen.plugins] == ["jax-cuda12-pjrt", "jax-cuda12-plugin"]
    assert set(answers(seen).values()) == {"loads"}


def test_torch_for_the_cpu() -> None:
    seen = only("torch", python_of("torch"))
    assert seen.version.endswith("+cpu")
    assert need(seen.build.kind) == "cpu"
    assert isinstance(seen.build.architectures, Absent)


@pytest.mark.parametrize("target", ["tensorflow-2.21", "jax", "torch"])
def test_keras_3_is_configurable(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    python = python_of(target)
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    seen = only("keras", python)
    assert seen.keras is not None
    assert seen.keras.generation == "keras-3"
    assert seen.keras.backend == Known("jax", "environment variable KERAS_BACKEND")


@pytest.mark.parametrize("target", ["tensorflow-2.21", "jax", "torch", "tensorflow-gpu-1.15"])
def test_a_fresh_installation_has_no_conflicts(target: str) -> None:
    host = LocalHost()
    found = packages.collect(host, need(interpreter.collect(host, python_of(target))))
    assert need(requirements.conflicts(found)) == ()


LIST_PACKAGES = """
import importlib.metadata
for each in importlib.metadata.distributions():
    print(each.metadata["Name"] + "=" + each.version)
"""
LIST_PACKAGES_OLD = """
import pkg_resources
for each in pkg_resources.working_set:
    print(each.key + "=" + each.version)
"""


@pytest.mark.parametrize("target", ["tensorflow-2.21", "tensorflow-gpu-1.15", "jax", "torch"])
def test_packages_are_those_the_target_itself_lists(target: str) -> None:
    python = python_of(target)
    host = LocalHost()
    found = need(packages.collect(host, need(interpreter.collect(host, python))))
    script = LIST_PACKAGES_OLD if target == "tensorflow-gpu-1.15" else LIST_PACKAGES
    listed = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
    theirs = {
        (normalised(name), version)
        for name, _, version in (line.partition("=") for line in listed.stdout.split())
    }
    assert {(each.name, each.version) for each in found} == theirs


@pytest.mark.parametrize(
    ("target", "framework", "program"),
    [
        (
            "tensorflow-2.21-cuda",
            "tensorflow",
            "import tensorflow as tf; tf.config.list_physical_devices()",
        ),
        ("jax-cuda12", "jax", "import jax; jax.devices()"),
    ],
)
def test_the_real_process_loads_the_same_files(
    target: str,
    framework: FrameworkName,
    program: str,
    driver: pathlib.Path,
    tmp_path: pathlib.Path,
) -> None:
    python = python_of(target)
    mine = need(only(framework, python).libraries)
    log = tmp_path / "loader"
    environment = {**os.environ, "LD_DEBUG": "libs,files", "LD_DEBUG_OUTPUT": str(log)}
    subprocess.run(
        [python, "-c", program], env=environment, capture_output=True, timeout=PATIENCE, check=True
    )
    opened = opened_files("\n".join(path.read_text() for path in tmp_path.glob("loader.*")))
    required = [each for each in mine if each.required]
    assert {each.library: where(each) for each in required} == {
        each.library: opened.get(each.library) for each in required
    }


def opened_files(log: str) -> dict[str, str]:
    """Name of a library to the file that was loaded for it, from the loader's own account."""
    paths = re.findall(r"calling init: (\S+)", log)
    return {os.path.basename(path): os.path.realpath(path) for path in paths}


def where(resolution: Resolution) -> str | None:
    return None if resolution.path is None else os.path.realpath(resolution.path)


def test_all_of_it_is_quick() -> None:
    """Ten times the processor time that it takes, and less than importing TensorFlow."""
    python = python_of("tensorflow-2.21")
    collect(python)
    began = sum(os.times()[:4])
    collect(python)
    assert sum(os.times()[:4]) - began < 1
