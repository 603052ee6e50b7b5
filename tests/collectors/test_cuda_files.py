"""CUDA files are found where they lie, once each, with the version the file itself tells."""

from __future__ import annotations

import json
import os
import pathlib
from dataclasses import dataclass
from typing import Any

import pytest

from tests.cases import each
from tests.elfwriter import Library, write
from whygpu.collectors import cuda_files
from whygpu.collectors.library_versions import ask, spell
from whygpu.host.local import LocalHost
from whygpu.host.replay import ReplayHost
from whygpu.model.codec import encode
from whygpu.model.libraries import LibraryCopy, Toolkit
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.target import Interpreter

TELLS_12090 = bytes.fromhex("c7073a2f000031c0c3")
"""mov dword [rdi], 12090; xor eax, eax; ret"""
FAILS_WITH_7 = bytes.fromhex("b807000000c3")
CRASHES = bytes.fromhex("0f0b")


@dataclass
class Place:
    """A made-up environment in a real folder."""

    root: pathlib.Path

    @property
    def site(self) -> pathlib.Path:
        return self.root / "env" / "lib" / "python3.11" / "site-packages"

    @property
    def target(self) -> Interpreter:
        return Interpreter(
            path=str(self.root / "env" / "bin" / "python"),
            version="3.11.7",
            implementation="cpython",
            prefix=str(self.root / "env"),
            isolated=True,
            user_site=Absent("site"),
            paths=(str(self.root / "stdlib"), str(self.site)),
            wheel_tags=(),
        )

    def add(self, path: str, **words: Any) -> pathlib.Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(write(Library(**words)))
        return place

    def wheel(self, name: str, version: str, folder: str, file: str, **words: Any) -> pathlib.Path:
        """A library and the record of the wheel that brought it."""
        relative = f"nvidia/{folder}/lib/{file}"
        path = self.add(f"env/lib/python3.11/site-packages/{relative}", **words)
        metadata = self.site / f"{name.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "RECORD").write_text(
            f"nvidia/{folder}/__init__.py,sha256=x,0\n{relative},sha256=x,{path.stat().st_size}\n"
            f"{metadata.name}/RECORD,,\n"
        )
        return path

    def folders(self) -> list[cuda_files.LibraryFolder]:
        found = cuda_files.library_folders(LocalHost(), self.target)
        return [folder for folder in found if folder.path.startswith(str(self.root))]

    def copies(self) -> list[LibraryCopy]:
        observed = cuda_files.collect(LocalHost(), self.target, tuple(self.folders()))
        return list(observed.value.copies) if isinstance(observed, Known) else []

    def toolkits(self) -> list[Toolkit]:
        observed = cuda_files.collect(LocalHost(), self.target, ())
        toolkits = observed.value.toolkits if isinstance(observed, Known) else ()
        return [toolkit for toolkit in toolkits if toolkit.path.startswith(str(self.root))]


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name in ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    return Place(tmp_path)


def test_a_wheels_library_with_its_owner(place: Place) -> None:
    path = place.wheel(
        "nvidia-cudnn-cu12", "9.27.0.42", "cudnn", "libcudnn.so.9", soname="libcudnn.so.9"
    )
    (copy,) = place.copies()
    record = place.site / "nvidia_cudnn_cu12-9.27.0.42.dist-info" / "RECORD"
    assert copy == LibraryCopy(
        name="cudnn",
        soname="libcudnn.so.9",
        path=str(path),
        version=Known("9.27.0.42", str(record)),
        origin="wheel",
        owner="nvidia-cudnn-cu12 9.27.0.42",
    )


def test_a_file_put_in_the_place_of_a_wheels_is_asked_itself(place: Place) -> None:
    path = place.wheel("nvidia-cuda-runtime-cu12", "12.4.127", "cuda_runtime", "libcudart.so.12")
    other = Library(defines=["cudaRuntimeGetVersion", "more"], code=TELLS_12090)
    path.write_bytes(write(other))
    (copy,) = place.copies()
    assert copy.version == Known("12.9", f"cudaRuntimeGetVersion() of {path}")


def test_several_names_of_one_file_are_one_copy(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_HOME", str(place.root / "cuda"))
    real = place.add("cuda/lib64/libcudart.so.12.4.127", soname="libcudart.so.12")
    (real.parent / "libcudart.so.12").symlink_to(real.name)
    (real.parent / "libcudart.so").symlink_to("libcudart.so.12")
    (copy,) = place.copies()
    assert (copy.path, copy.soname) == (str(real.parent / "libcudart.so.12"), "libcudart.so.12")
    assert copy.version == Known("12.4.127", str(real))
    assert (copy.origin, copy.owner) == ("toolkit", "")


def test_a_soname_with_two_numbers_is_no_version(place: Place) -> None:
    """libcudart.so.11.0 is the name of the runtime of every CUDA 11."""
    path = place.wheel("nvidia-cuda-runtime-cu11", "11.8.89", "cuda_runtime", "libcudart.so.11.0")
    (copy,) = place.copies()
    assert isinstance(copy.version, Known)
    assert copy.version.value == "11.8.89"
    path.write_bytes(write(Library(defines=["nothing_to_ask_for"])))
    (copy,) = place.copies()
    assert isinstance(copy.version, Unknown)
    assert "cudaRuntimeGetVersion" in copy.version.reason


def test_a_broken_copy_says_so_instead_of_a_version(place: Place) -> None:
    path = place.wheel("nvidia-cudnn-cu12", "9.27.0.42", "cudnn", "libcudnn.so.9")
    path.write_bytes(b"")
    (copy,) = place.copies()
    assert copy.version == Unknown(f"{path}: file too short")
    assert copy.owner == "nvidia-cudnn-cu12 9.27.0.42"


def test_folders_in_order_of_their_origin_each_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.add("env/lib/python3.11/site-packages/nvidia/cublas/lib/libcublas.so.12")
    place.add("env/lib/python3.11/site-packages/nvidia/cu13/lib/libcudart.so.13")
    place.add("env/lib/python3.11/site-packages/torch/lib/libcudart-1b2c3d4e.so.11.0")
    place.add("cuda-12.4/lib64/libcudart.so.12")
    place.add("search/libcudnn.so.9")
    (place.root / "cuda").symlink_to("cuda-12.4")
    monkeypatch.setenv("CUDA_HOME", str(place.root / "cuda"))
    monkeypatch.setenv("CUDA_PATH", str(place.root / "cuda-12.4"))
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{place.root}/search::{place.root}/gone")
    assert [(folder.path, folder.origin) for folder in place.folders()] == [
        (str(place.site / "nvidia" / "cu13" / "lib"), "wheel"),
        (str(place.site / "nvidia" / "cublas" / "lib"), "wheel"),
        (str(place.site / "torch" / "lib"), "wheel"),
        (f"{place.root}/search", "ld-library-path"),
        (f"{place.root}/cuda/lib64", "toolkit"),
    ]
    assert [copy.name for copy in place.copies()] == [
        *("cudart", "cublas", "cudart", "cudnn", "cudart"),
    ]


def test_a_conda_environment(place: Place) -> None:
    library = place.add("env/lib/libcudnn.so.9.1.1", soname="libcudnn.so.9")
    metadata = place.root / "env" / "conda-meta"
    metadata.mkdir()
    (metadata / "cudnn-9.1.1.17-cuda12.4_0.json").write_text(
        json.dumps({"files": ["lib/libcudnn.so.9.1.1"]})
    )
    (copy,) = place.copies()
    assert (copy.origin, copy.owner) == ("conda", "cudnn 9.1.1.17")
    assert copy.version == Known("9.1.1", str(library))


VERSION_FILES = {
    "version.json": ('{"cuda": {"name": "CUDA SDK", "version": "12.4.1"}}', "12.4.1"),
    "version.txt": ("CUDA Version 10.1.243\n", "10.1.243"),
}


@pytest.mark.parametrize("name", VERSION_FILES)
def test_the_version_of_a_toolkit(place: Place, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, version = VERSION_FILES[name]
    root = place.root / "cuda-99.9"
    root.mkdir()
    (root / name).write_text(text)
    monkeypatch.setenv("CUDA_HOME", str(root))
    assert place.toolkits() == [Toolkit(str(root), Known(version, str(root / name)))]


def test_the_version_of_a_toolkit_by_its_runtime_but_never_by_its_folder(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = place.root / "cuda-99.9"
    library = place.add("cuda-99.9/lib64/libcudart.so.12.4.127")
    monkeypatch.setenv("CUDA_PATH", str(root))
    (toolkit,) = place.toolkits()
    assert isinstance(toolkit.version, Unknown)
    (library.parent / "libcudart.so").symlink_to(library.name)
    assert place.toolkits() == [Toolkit(str(root), Known("12.4.127", str(library)))]
    (root / "version.json").write_text("{}")
    (toolkit,) = place.toolkits()
    assert toolkit.version == Unknown(f"{root}/version.json does not name a CUDA version")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the functions are x86-64 code")
def test_libraries_are_asked_one_by_one(place: Place) -> None:
    name = "cudaRuntimeGetVersion"
    good = place.add("good.so", defines=[name], code=TELLS_12090)
    failing = place.add("failing.so", defines=[name], code=FAILS_WITH_7)
    crashing = place.add("crashing.so", defines=[name], code=CRASHES)
    missing = place.root / "missing.so"
    paths = (crashing, failing, missing, good)
    told = ask(LocalHost(), {str(path): "cudart" for path in paths})
    assert told[str(good)] == Known("12.9", f"cudaRuntimeGetVersion() of {good}")
    reasons = {path: answer.reason for path, answer in told.items() if isinstance(answer, Unknown)}
    assert reasons[str(failing)].endswith(f"{name} returned 7")
    assert reasons[str(crashing)].endswith("signal 4 ended it")
    assert "No such file or directory" in reasons[str(missing)]


@each(
    ("name", "answer", "version"),
    [
        ("cudart", "12090", "12.9"),
        ("cudart", "9020", "9.2"),
        ("nccl", "23203", "2.32.3"),
        ("nccl", "2804", "2.8.4"),
        ("cudnn", "9.27.0", "9.27.0"),
    ],
)
def test_numbers_are_spelled_as_people_write_them(name: str, answer: str, version: str) -> None:
    assert spell(name, answer) == version


def test_a_machine_without_any_cuda(place: Place) -> None:
    host = ReplayHost(
        {"platform": encode(LocalHost().platform)}, absent=("list", "stat", "read", "read_bytes")
    )
    assert cuda_files.library_folders(host, place.target) == ()
    assert isinstance(cuda_files.collect(host, place.target, ()), Absent)
