"""Stub CUDA libraries: shared objects of a few kilobytes with the names, needs and versions of
NVIDIA's, laid out as its wheels, a toolkit or a loose folder would have them.

They load, and answer the questions about their version; they compute nothing.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.driver import NoCompiler

_FLAGS = ("-std=gnu11", "-O1", "-shared", "-fPIC", "-nostdlib", "-Wno-builtin-declaration-mismatch")


@dataclass(frozen=True)
class StubLibrary:
    """One shared object. `answers` are functions that store a number and return success."""

    soname: str
    needed: tuple[str, ...] = ()
    runpath: str = "$ORIGIN"
    version: tuple[int, int, int] = (0, 0, 0)
    property_call: str = ""
    """The function that tells a part of the version: cudnnGetProperty."""
    number_call: str = ""
    """The function that stores the version as one number: cudaRuntimeGetVersion."""
    defines: tuple[str, ...] = ()
    """Functions under a version that is the library's soname, as NVIDIA's have."""
    requires: tuple[tuple[str, str], ...] = ()
    """Functions of another library, with its soname: the loader insists on them."""

    def build(self, cache: Path) -> Path:
        """The compiled file, from the cache if it has been compiled before."""
        gcc = shutil.which("gcc")
        if gcc is None:
            raise NoCompiler("stub CUDA libraries are compiled by gcc, which is not on the PATH")
        digest = hashlib.sha256(repr((self, _FLAGS)).encode()).hexdigest()[:16]
        built = cache / f"cuda-{digest}" / self.soname
        if not built.exists():
            built.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=cache) as scratch:
                unfinished = self._compile(gcc, Path(scratch))
                unfinished.rename(built)
        return built

    def _compile(self, gcc: str, scratch: Path) -> Path:
        source, exports = scratch / "library.c", scratch / "exports"
        source.write_text(self._source())
        exports.write_text(f"{self.soname} {{ global: *; }};\n")
        linking = [f"-Wl,-soname,{self.soname}", f"-Wl,--version-script={exports}"]
        linking += ["-Wl,--no-as-needed", "-Wl,--enable-new-dtags", f"-Wl,-rpath,{self.runpath}"]
        # What it needs is linked against a stand-in, so that only the name is recorded.
        for soname in self.needed:
            stand_in = StubLibrary(
                soname, defines=tuple(name for name, of in self.requires if of == soname)
            )
            folder = scratch / "needed"
            folder.mkdir(exist_ok=True)
            inner = folder / f"of-{soname}"
            inner.mkdir()
            stand_in._compile(gcc, inner).rename(folder / soname)
            linking.append(str(folder / soname))
        output = scratch / "library.so"
        command = [gcc, *_FLAGS, "-o", str(output), str(source), *linking]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{self.soname} does not compile:\n{done.stderr}")
        return output

    def _source(self) -> str:
        major, minor, patch = self.version
        parts = [f"int {name}(void) {{ return 0; }}" for name in self.defines]
        if self.property_call:
            parts.append(
                f"static const int parts[] = {{{major}, {minor}, {patch}}};\n"
                f"int {self.property_call}(int part, int *value)"
                " { *value = parts[part]; return 0; }"
            )
        if self.number_call:
            number = major * 1000 + minor * 10
            parts.append(f"int {self.number_call}(int *value) {{ *value = {number}; return 0; }}")
        for index, (name, _) in enumerate(self.requires):
            parts.append(f"extern int {name}(void);\nint (*const used_{index})(void) = {name};")
        return "\n".join(parts) + "\n"


@dataclass(frozen=True)
class Wheel:
    """An nvidia-* distribution: its folder below nvidia/ and the libraries in it."""

    distribution: str
    version: str
    folder: str
    libraries: tuple[StubLibrary, ...]
    other_files: Mapping[str, bytes] = field(default_factory=dict, hash=False)


def cudart(version: tuple[int, int, int] = (12, 9, 79)) -> StubLibrary:
    return StubLibrary(
        f"libcudart.so.{version[0] if version[0] >= 11 else f'{version[0]}.{version[1]}'}",
        version=version,
        number_call="cudaRuntimeGetVersion",
    )


def cudnn(version: tuple[int, int, int] = (9, 27, 0)) -> StubLibrary:
    return StubLibrary(
        f"libcudnn.so.{version[0]}", version=version, property_call="cudnnGetProperty"
    )


def cublas(version: tuple[int, int, int] = (12, 9, 2), *, old: bool = False) -> StubLibrary:
    """`old`: of a release before the function existed that newer sister libraries call."""
    return StubLibrary(
        "libcublas.so.12",
        needed=("libcublasLt.so.12",),
        version=version,
        property_call="cublasGetProperty",
        defines=("cublasCreate_v2",) if old else ("cublasCreate_v2", "cublasSetEnvironmentMode"),
    )


def cublas_lt(version: tuple[int, int, int] = (12, 9, 2)) -> StubLibrary:
    return StubLibrary("libcublasLt.so.12", version=version, property_call="cublasLtGetProperty")


CUSOLVER = StubLibrary(
    "libcusolver.so.11",
    needed=("libnvJitLink.so.12", "libcusparse.so.12", "libcublas.so.12", "libcublasLt.so.12"),
    runpath="$ORIGIN:$ORIGIN/../../cublas/lib:$ORIGIN/../../nvjitlink/lib:"
    "$ORIGIN/../../cusparse/lib",
    version=(11, 7, 5),
    property_call="cusolverGetProperty",
    requires=(("cublasSetEnvironmentMode", "libcublas.so.12"),),
)
CUSPARSE = StubLibrary(
    "libcusparse.so.12",
    needed=("libnvJitLink.so.12",),
    runpath="$ORIGIN/../../nvjitlink/lib:$ORIGIN",
    version=(12, 5, 10),
    property_call="cusparseGetProperty",
)
CUFFT = StubLibrary("libcufft.so.11", version=(11, 4, 1), property_call="cufftGetProperty")
NVJITLINK = StubLibrary("libnvJitLink.so.12", version=(12, 9, 0))

CUDA_12: Mapping[str, Wheel] = {
    wheel.folder: wheel
    for wheel in (
        Wheel("nvidia-cuda-runtime-cu12", "12.9.79", "cuda_runtime", (cudart(),)),
        Wheel("nvidia-cublas-cu12", "12.9.2.10", "cublas", (cublas(), cublas_lt())),
        Wheel("nvidia-cufft-cu12", "11.4.1.4", "cufft", (CUFFT,)),
        Wheel("nvidia-cusolver-cu12", "11.7.5.82", "cusolver", (CUSOLVER,)),
        Wheel("nvidia-cusparse-cu12", "12.5.10.65", "cusparse", (CUSPARSE,)),
        Wheel("nvidia-nvjitlink-cu12", "12.9.86", "nvjitlink", (NVJITLINK,)),
        Wheel("nvidia-cudnn-cu12", "9.27.0.42", "cudnn", (cudnn(),)),
        Wheel(
            "nvidia-cuda-nvcc-cu12",
            "12.9.86",
            "cuda_nvcc",
            (),
            {"bin/ptxas": b"#!/bin/sh\nexit 1\n", "nvvm/libdevice/libdevice.10.bc": b"BC\xc0\xde"},
        ),
    )
}
"""What `tensorflow[and-cuda]` brings, as far as listing a GPU needs it."""
