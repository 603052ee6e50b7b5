"""The simulated loader agrees with the real one on every library of real framework installs."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from tests.elfwriter import Library, write
from tests.real_loader import RealLoader, Request
from tests.targets import python_of
from whygpu.collectors.cuda_files import LibraryFolder
from whygpu.collectors.loader import LoaderProcess
from whygpu.host.local import LocalHost
from whygpu.model.libraries import Resolution
from whygpu.model.observed import Known

pytestmark = pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="the caller's address is forged for x86-64"
)

TARGETS = (
    *("tensorflow-2.21", "tensorflow-2.21-cuda", "jax", "jax-cuda12", "torch"),
    *("tensorflow-gpu-1.15", "tensorflow-gpu-1.12"),
)
FRAMEWORK_FOLDERS = (
    *("tensorflow", "tensorflow_core", "jaxlib", "jax_plugins", "jax_cuda12_plugin"),
    *("torch", "nvidia"),
)
ASKING = (
    "tensorflow/libtensorflow_framework.so.*",
    "tensorflow/libtensorflow_cc.so.*",
    "tensorflow_core/libtensorflow_framework.so.*",
    "jax_cuda12_plugin/*.so",
    "jax_plugins/xla_cuda12/*.so",
    "torch/lib/libtorch_cpu.so",
)
"""Files that ask for CUDA libraries by name."""

CUDA_NAMES = (
    *("libcuda.so.1", "libnvidia-ml.so.1", "libcudart.so.12", "libcublas.so.12"),
    *("libcublasLt.so.12", "libcufft.so.11", "libcurand.so.10", "libcusolver.so.11"),
    *("libcusolverMg.so.11", "libcusparse.so.12", "libcudnn.so.9", "libcudnn_graph.so.9"),
    *("libcudnn_engines_runtime_compiled.so.9", "libnccl.so.2", "libnvJitLink.so.12"),
    *("libcupti.so.12", "libnvrtc.so.12", "libnvshmem_host.so.3", "libcudart.so.10.0"),
    *("libcublas.so.9.0", "libcudart.so.13", "libstdc++.so.6", "libz.so.1"),
)


def site_of(python: str) -> pathlib.Path:
    (site,) = pathlib.Path(python).parent.parent.glob("lib/python3*/site-packages")
    return site


def libraries(site: pathlib.Path) -> list[str]:
    """All shared objects, but for TensorFlow 1's contributions: they need Python code around them
    that first makes another library's symbols global."""
    return sorted(
        str(path)
        for folder in FRAMEWORK_FOLDERS
        for path in (site / folder).rglob("*.so*")
        if path.is_file() and "contrib" not in path.parts
    )


def disagreements(
    python: str, processes: Sequence[Sequence[Request]]
) -> Iterator[tuple[Resolution, dict[str, Any]]]:
    """Requests on which the two loaders differ; each sequence gets a process of its own."""
    with RealLoader(python, os.environ) as loader:
        for requests in processes:
            process = LoaderProcess(LocalHost(), python)
            real = loader.open(requests)
            compared = 0
            for (library, requester), answer in zip(requests, real, strict=False):
                simulated = process.open(library, requester=requester or python)
                compared += 1
                if not same(simulated, answer):
                    yield simulated, answer
            assert compared == len(requests) or "signal" in real[-1]


def same(simulated: Resolution, real: dict[str, Any]) -> bool:
    if "path" in real:
        return simulated.outcome == "loads" and os.path.samefile(simulated.path or "", real["path"])
    if "error" in real:
        return simulated.outcome != "loads" and simulated.detail == real["error"]
    return simulated.outcome == "broken-file"


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)
    monkeypatch.delenv("LD_PRELOAD", raising=False)


@pytest.mark.parametrize("target", TARGETS)
def test_every_library_of_the_install(target: str) -> None:
    python = python_of(target)
    requests: list[Request] = [(path, None) for path in libraries(site_of(python))]
    assert requests
    # The libraries of TensorFlow 1 abort where two of them bring the same protocol buffers.
    apart = target.startswith("tensorflow-gpu-1")
    processes = [[request] for request in requests] if apart else [requests]
    assert list(disagreements(python, processes)) == []


@pytest.mark.parametrize("target", TARGETS)
def test_every_cuda_library_on_its_own(target: str) -> None:
    """In one process the first library brings in what a later one could not find itself."""
    python = python_of(target)
    site = site_of(python)
    paths = [path for path in libraries(site) if path.startswith(str(site / "nvidia"))]
    assert list(disagreements(python, [[(path, None)] for path in paths])) == []


@pytest.mark.parametrize("searched", ["nothing", "all wheels", "cusolver's wheel", "backwards"])
@pytest.mark.parametrize("target", TARGETS)
def test_every_name_asked_for_by_the_framework(
    target: str, searched: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = python_of(target)
    site = site_of(python)
    folders = sorted(str(path) for path in site.glob("nvidia/*/lib"))
    chosen = {
        "nothing": [],
        "all wheels": folders,
        "cusolver's wheel": [folder for folder in folders if "cusolver" in folder],
        "backwards": [*reversed(folders), "/usr/local/cuda/lib64", ""],
    }[searched]
    if chosen:
        monkeypatch.setenv("LD_LIBRARY_PATH", ":".join(chosen))
    asking = sorted(str(path) for pattern in ASKING for path in site.glob(pattern))
    processes = [
        [(asker, None), *runtime_first(site), *((name, asker) for name in CUDA_NAMES)]
        for asker in asking
    ]
    assert list(disagreements(python, processes)) == []


def runtime_first(site: pathlib.Path) -> Iterator[Request]:
    """TensorFlow 2 opens the CUDA runtime while it is being loaded itself."""
    for path in site.glob("tensorflow/libtensorflow_framework.so.2"):
        yield "libcudart.so.12", str(path)


Damage = Callable[[pathlib.Path], None]


def truncate(path: pathlib.Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as whole:
        content = whole.read(min(size // 2, 1 << 20))
    replace(path, content)


def replace(path: pathlib.Path, content: bytes) -> None:
    path.unlink()
    path.write_bytes(content)


def patch(path: pathlib.Path, place: int, content: bytes) -> None:
    with path.open("rb") as whole:
        start = whole.read(4096)
    replace(path, start[:place] + content + start[place + len(content) :])


def link_nowhere(path: pathlib.Path) -> None:
    path.unlink()
    path.symlink_to("gone")


def put_folder(path: pathlib.Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Damage] = {
    "missing": pathlib.Path.unlink,
    "truncated": truncate,
    "empty": lambda path: replace(path, b""),
    "not ELF": lambda path: replace(path, b"<html>404 Not Found</html>" * 9),
    "32-bit": lambda path: patch(path, 4, b"\1"),
    "aarch64": lambda path: patch(path, 18, b"\xb7\0"),
    "link to nowhere": link_nowhere,
    "folder": put_folder,
}
DAMAGED = ("libcudart.so.12", "libcublas.so.12", "libnvJitLink.so.12", "libcudnn_graph.so.9")
ORDER = (
    *("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11"),
    *("libcusolver.so.11", "libcusparse.so.12", "libcudnn.so.9", "libcudnn_cnn.so.9"),
)


def link_farm(site: pathlib.Path, place: pathlib.Path) -> tuple[pathlib.Path, str]:
    """The wheels' folders with links for files, so that single files can be damaged.

    Who asks there has TensorFlow's search list but none of its code, which opens the CUDA runtime
    as soon as it is loaded.
    """
    for folder in site.glob("nvidia/*/lib"):
        copy = place / folder.relative_to(site)
        copy.mkdir(parents=True)
        for path in folder.glob("*.so*"):
            (copy / path.name).symlink_to(path)
    facts = LocalHost().elf(str(site / "tensorflow" / "libtensorflow_framework.so.2"))
    assert isinstance(facts, Known)
    asker = place / "tensorflow" / "asker.so"
    asker.parent.mkdir()
    asker.write_bytes(write(Library(runpath=":".join(facts.value.runpath))))
    return place, str(asker)


@pytest.mark.parametrize("library", DAMAGED)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_library(
    damage: str, library: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = python_of("tensorflow-2.21-cuda")
    site, asker = link_farm(site_of(python), tmp_path / "site")
    (victim,) = site.glob(f"nvidia/*/lib/{library}")
    DAMAGES[damage](victim)
    requests: list[Request] = [(asker, None), *((name, asker) for name in ORDER)]
    # One process each as well: the first crash would hide the rest.
    processes = [requests, *([requests[0], request] for request in requests[1:])]
    assert list(disagreements(python, processes)) == []
    monkeypatch.setenv("LD_LIBRARY_PATH", str(site / "nvidia" / "cusolver" / "lib"))
    assert list(disagreements(python, [requests])) == []


@pytest.mark.parametrize("library", DAMAGED)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_copy_shadows_a_good_one(
    damage: str, library: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = python_of("tensorflow-2.21-cuda")
    site, asker = link_farm(site_of(python), tmp_path / "site")
    (original,) = site.glob(f"nvidia/*/lib/{library}")
    shadow = tmp_path / library
    shadow.symlink_to(original)
    DAMAGES[damage](shadow)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}:{site}/nvidia/cusolver/lib")
    requests: list[Request] = [(asker, None), *((name, asker) for name in ORDER)]
    assert list(disagreements(python, [requests])) == []


def test_an_older_copy_that_lacks_a_symbol(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = python_of("tensorflow-2.21-cuda")
    older = Library(soname="libnvJitLink.so.12", defines=["nvJitLinkVersion@libnvJitLink.so.12"])
    (tmp_path / "libnvJitLink.so.12").write_bytes(write(older))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    site = site_of(python)
    asker = str(site / "tensorflow" / "libtensorflow_framework.so.2")
    processes: list[list[Request]] = [[(asker, None), ("libcusparse.so.12", asker)]]
    assert list(disagreements(python, processes)) == []
    process = LoaderProcess(LocalHost(), python)
    process.open(asker, requester=python)
    found = process.open("libcusparse.so.12", requester=asker)
    assert found.outcome == "symbol-missing"
    assert found.chain == ("libcusparse.so.12", "libnvJitLink.so.12")


def test_the_fresh_tensorflow_install_misses_one_folder() -> None:
    """tensorflow[and-cuda] 2.21.0 cannot find a library that its own wheels bring."""
    python = python_of("tensorflow-2.21-cuda")
    site = site_of(python)
    folders = [LibraryFolder(str(path), "wheel") for path in sorted(site.glob("nvidia/*/lib"))]
    process = LoaderProcess(LocalHost(), python, folders)
    asker = str(site / "tensorflow" / "libtensorflow_framework.so.2")
    found = {name: process.open(name, requester=asker) for name in ORDER}
    failing = [name for name, each in found.items() if each.outcome != "loads"]
    assert failing == ["libcusolver.so.11"]
    (copy,) = found["libcusolver.so.11"].other_copies
    assert copy.path == str(site / "nvidia" / "cusolver" / "lib" / "libcusolver.so.11")
    assert copy.reason == "its folder is not on a search path"
