"""PyTorch's libraries, followed in an installation of a few small shared objects."""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.collectors.sites import install, interpreter, write
from whygpu.collectors import frameworks, packages
from whygpu.collectors.loader import LoaderProcess
from whygpu.host.local import LocalHost
from whygpu.model.observed import Known, need
from whygpu.model.target import Framework

RPATH = "-Wl,--disable-new-dtags,-rpath,$ORIGIN/../../nvidia/cuda_runtime/lib"


def library(
    path: pathlib.Path, *needs: pathlib.Path, options: tuple[str, ...] = ()
) -> pathlib.Path:
    """A shared object without code that needs others."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("small shared objects are made with gcc, which is not on PATH")
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [gcc, "-shared", "-nostdlib", f"-Wl,-soname,{path.name}", "-Wl,--no-as-needed"]
    subprocess.run(
        [*command, *options, "-x", "c", "/dev/null", "-x", "none", *needs, "-o", path], check=True
    )
    return path


@pytest.fixture
def site(tmp_path: pathlib.Path) -> pathlib.Path:
    """torch for CUDA 12, linked with the runtime in the wheel's folder and with cuDNN elsewhere."""
    folder = tmp_path / "site"
    install(folder, "torch", "2.4.1", requires=["nvidia-cudnn-cu12==9.1.0.70"])
    write(folder / "torch/version.py", "__version__ = '2.4.1+cu121'\ncuda = '12.1'\nhip = None\n")
    write(folder / "torch/__init__.py", "")
    cudart = library(folder / "nvidia/cuda_runtime/lib/libcudart.so.12")
    cudnn = library(folder / "nvidia/cudnn/lib/libcudnn.so.9")
    library(folder / "torch/lib/libtorch_global_deps.so", cudart, cudnn, options=(RPATH,))
    library(folder / "torch/lib/libtorch_cuda.so", cudart, cudnn, options=(RPATH,))
    return folder


def collect(folder: pathlib.Path) -> Framework:
    host, python = LocalHost(), interpreter(folder)._replace(path=sys.executable)
    found = packages.collect(host, python)
    known = Known(python, "test")
    (seen,) = need(
        frameworks.collect(host, known, found, lambda: LoaderProcess(host, sys.executable))
    )
    return seen


def test_the_build(site: pathlib.Path) -> None:
    build = collect(site).build
    assert (need(build.kind), need(build.cuda), need(build.cudnn)) == ("cuda", "12.1", "9.1.0.70")


def test_a_copy_outside_the_rpath_is_loaded_from_its_wheel_in_need(site: pathlib.Path) -> None:
    cudart, cudnn, driver = need(collect(site).libraries)
    assert (cudart.library, cudart.outcome) == ("libcudart.so.12", "loads")
    assert (cudnn.library, cudnn.outcome) == ("libcudnn.so.9", "loads")
    assert cudnn.path == str(site / "nvidia/cudnn/lib/libcudnn.so.9")
    assert driver.library == "libcuda.so.1"


def test_a_library_that_is_nowhere_ends_it(site: pathlib.Path) -> None:
    (site / "nvidia/cudnn/lib/libcudnn.so.9").unlink()
    answers = [each for each in need(collect(site).libraries) if each.library != "libcuda.so.1"]
    broken = [each for each in answers if each.outcome != "loads"]
    assert broken
    assert all(each.required for each in broken)
    assert broken[0].chain[-1] == "libcudnn.so.9"
