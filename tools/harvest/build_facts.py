"""What a wheel says of its own GPU build: CUDA, cuDNN, architectures, folders searched."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable
from typing import Any

from packaging.requirements import Requirement

from tools.harvest.scripted_builds import scripted_build
from whygpu.host.elf import facts
from whygpu.host.fatbin import architectures as architectures_of
from whygpu.package_index.release_rows import BuildFacts, BuildReader
from whygpu.package_index.remote_wheel import RemoteWheel
from whygpu.tables.architectures import parse_code
from whygpu.tables.cuda_wheels import WHEELS
from whygpu.tables.tensorflow_builds import loads_of

_HEAD_LIMIT = 96 << 20
"""How much of a library is unpacked in search of strings that linkers put near its start."""
_OVERLAP = 4096
_FAT_BINARY_LIMIT = 100 << 20
"""The largest library, as packed, that is fetched whole for its fat binaries."""

_CUDART = re.compile(rb"\0libcudart\.so\.(\d+(?:\.\d+)?)\0")
_CUDNN = re.compile(rb"\0libcudnn\.so\.(\d+)\0")
_RUNPATH = re.compile(rb"\0((?:\$ORIGIN[^\0:]*:)+[^\0]*|\$ORIGIN[^\0]*/nvidia/[^\0]*)\0")


_TORCH_CODES = re.compile(rb"((?:sm|compute)_\d+[af]?(?: (?:sm|compute)_\d+[af]?)+)\0")
"""What torch.cuda.get_arch_list() returns. The fat binaries of PyTorch's smaller libraries will
not do: those are of MAGMA and NVSHMEM, which are built for other architectures."""
_BUILD_VERSIONS = re.compile(rb"\xbf(..\0\0).{27}\xbf(..[\0\1]\0)", re.DOTALL)
"""Two functions of jaxlib's _versions module, 32 bytes apart: what each hands on to become a Python
number, the CUDA and the cuDNN version it was compiled with."""


def assigned(source: str) -> dict[str, Any]:
    """Constants that a generated Python module assigns, those inside one mapping included."""
    values: dict[str, Any] = {}
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name, expression = statement.targets[0].id, statement.value
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name, expression = statement.target.id, statement.value or ast.Constant(None)
        else:
            continue
        if isinstance(expression, ast.Call) and expression.args:
            expression = expression.args[0]
        try:
            value = ast.literal_eval(expression)
        except ValueError:
            continue
        if name == "build_info":
            values.update(value)
        else:
            values[name] = value
    return values


def with_machine_code(names: Iterable[str]) -> tuple[str, ...]:
    """TensorFlow's compute_90 stands for PTX and for the machine code made from it."""
    given = tuple(names)
    made = (name.replace("compute_", "sm_") for name in given)
    return tuple(dict.fromkeys((*made, *(name for name in given if name.startswith("compute_")))))


def first_match(wheel: RemoteWheel, name: str, pattern: re.Pattern[bytes]) -> str:
    """What the pattern finds first in the head of a member; empty when it finds nothing."""
    before = b""
    for piece in wheel.head(name, _HEAD_LIMIT):
        found = pattern.search(before + piece)
        if found:
            return found[1].decode("utf-8", "replace")
        before = (before + piece)[-_OVERLAP:]
    return ""


def fat_binaries(wheel: RemoteWheel, pattern: str) -> tuple[str, ...]:
    """Architectures in the first library that matches, unless it is too large to fetch."""
    name = wheel.find(pattern)
    if name is None or wheel.packed_size(name) > _FAT_BINARY_LIMIT:
        return ()
    return tuple(code for code in architectures_of(wheel.read(name)) if parse_code(code))


def pinned(requirements: Iterable[Requirement], name: str) -> str:
    """The one version, or the oldest, that a requirement on a package allows."""
    for requirement in requirements:
        if re.fullmatch(name, requirement.name):
            for specifier in requirement.specifier:
                if specifier.operator in ("==", ">=", "~="):
                    return specifier.version
    return ""


def unsearched_libraries(
    version: str, requirements: Iterable[Requirement], folders: str
) -> tuple[str, ...]:
    """Libraries that TensorFlow opens and its extra installs, in folders it does not search."""
    installed = {
        requirement.name
        for requirement in requirements
        if requirement.marker is not None and requirement.marker.evaluate({"extra": "and-cuda"})
    }
    needed = {load.library for load in loads_of(version) if load.required}
    return tuple(
        sorted(
            {
                row.library
                for row in WHEELS
                if row.distribution in installed
                and row.library in needed
                and f"nvidia/{wheel_folder(row.distribution)}/lib" not in folders
            }
        )
    )


def wheel_folder(distribution: str) -> str:
    """Where a wheel of NVIDIA's puts its libraries: nvidia-cuda-runtime-cu12 in cuda_runtime."""
    return re.sub(r"^nvidia-|-cu\d+$", "", distribution).replace("-", "_")


def tensorflow(
    wheel: RemoteWheel, version: str, requirements: tuple[Requirement, ...]
) -> BuildFacts:
    values = assigned(wheel.text(r"tensorflow(_core)?/python/platform/build_info\.py") or "")
    if not values.get("is_cuda_build", wheel.find(r"tensorflow_gpu-.*") is not None):
        return BuildFacts()
    cuda = values.get("cuda_version") or values.get("cuda_version_number") or ""
    cudnn = values.get("cudnn_version") or values.get("cudnn_version_number") or ""
    for library in (
        r"tensorflow/python/_pywrap_tensorflow(_internal)?\.so",
        r"tensorflow/libtensorflow_framework\.so",
    ):
        name = wheel.find(library)
        if name is not None and not (cuda and cudnn):
            cuda = cuda or first_match(wheel, name, _CUDART)
            cudnn = cudnn or first_match(wheel, name, _CUDNN)
    framework = wheel.find(r"tensorflow(_core)?/libtensorflow_framework\.so\.\d")
    if framework and cuda.isdigit():
        # Some build_info.py have but the major number; the names to open are made from the whole.
        whole = re.compile(rf"\0({cuda}\.\d)\0".encode())
        cuda = first_match(wheel, framework, whole) or cuda
    scripted = scripted_build("tensorflow", version)
    if scripted is not None:
        return BuildFacts(cuda, cudnn, scripted.codes, architectures_from=scripted.source)
    capabilities = values.get("cuda_compute_capabilities")
    if capabilities:
        architectures = with_machine_code(capabilities)
    else:
        # Small libraries of kernels, built with the same flags as the rest.
        architectures = fat_binaries(wheel, r".*/contrib/(rnn|image)/.*/_(lstm|image)_ops\.so")
    unsearched: tuple[str, ...] = ()
    if framework and any("and-cuda" in str(one.marker) for one in requirements):
        folders = first_match(wheel, framework, _RUNPATH)
        if not folders:
            raise ValueError(f"no RUNPATH found in {framework}")
        unsearched = unsearched_libraries(version, requirements, folders)
    return BuildFacts(cuda, cudnn, architectures, unsearched)


def torch(wheel: RemoteWheel, version: str, requirements: tuple[Requirement, ...]) -> BuildFacts:
    cuda = assigned(wheel.text(r"torch/version\.py") or "").get("cuda") or ""
    if not cuda:
        return BuildFacts()
    bundled = wheel.find(r"torch/lib/libcudnn(-[0-9a-f]+)?\.so\.\d+")
    cudnn = pinned(requirements, r"nvidia-cudnn-cu\d+")
    if not cudnn and bundled:
        cudnn = bundled.rpartition(".so.")[2]
    scripted = scripted_build("torch", version)
    if scripted is not None:
        return BuildFacts(cuda, cudnn, scripted.codes, architectures_from=scripted.source)
    codes = first_match(wheel, "torch/lib/libtorch_python.so", _TORCH_CODES).split()
    if not codes:
        raise ValueError("no list of architectures in libtorch_python.so")
    return BuildFacts(cuda, cudnn, tuple(codes))


def jax_plugin(
    wheel: RemoteWheel, version: str, requirements: tuple[Requirement, ...]
) -> BuildFacts:
    compiled = wheel.find(r"jax_cuda\d+_plugin/_versions\.so")
    if compiled is None:
        raise ValueError("no _versions.so")
    cuda, cudnn = build_versions(wheel.read(compiled))
    return BuildFacts(cuda, cudnn, fat_binaries(wheel, r"jax_cuda\d+_plugin/_prng\.so"))


def build_versions(code: bytes) -> tuple[str, str]:
    """CUDA and cuDNN from jaxlib's _versions module; ValueError where they are not as expected."""
    found = set()
    for match in _BUILD_VERSIONS.finditer(code):
        cuda, cudnn = (int.from_bytes(match[group], "little") for group in (1, 2))
        if 11000 <= cuda < 20000 and cuda % 10 == 0 and (8000 <= cudnn < 9000 or cudnn >= 90000):
            found.add((cuda, cudnn))
    if len(found) != 1:
        raise ValueError(f"{len(found)} pairs of versions in _versions.so instead of one")
    ((cuda, cudnn),) = found
    major = 1000 if cudnn < 10000 else 10000
    return (
        f"{cuda // 1000}.{cuda % 1000 // 10}",
        f"{cudnn // major}.{cudnn % major // 100}.{cudnn % 100}",
    )


def jax_pjrt(wheel: RemoteWheel, version: str, requirements: tuple[Requirement, ...]) -> BuildFacts:
    library = wheel.find(r"jax_plugins/xla_cuda\d+/xla_cuda_plugin\.so")
    return BuildFacts(cuda=re.sub(r"\D", "", library.split("/")[1]) if library else "")


def onnxruntime(
    wheel: RemoteWheel, version: str, requirements: tuple[Requirement, ...]
) -> BuildFacts:
    """Its small library for TensorRT links what the large one for CUDA does.

    Older wheels link neither, and load both from Python before they are needed.
    """
    values = assigned(wheel.text(r"onnxruntime/capi/build_and_package_info\.py") or "")
    library = wheel.read("onnxruntime/capi/libonnxruntime_providers_tensorrt.so")
    preloaded = wheel.text(r"onnxruntime/capi/_ld_preload\.py") or ""
    names = " ".join((*facts(library).needed, preloaded))
    cudart = re.search(r"libcudart\.so\.(\d+)", names)
    cudnn = re.search(r"libcudnn\.so\.(\d+)", names)
    if cudart is None or cudnn is None:
        raise ValueError("neither its library for TensorRT nor _ld_preload.py names CUDA")
    return BuildFacts(values.get("cuda_version") or cudart[1], cudnn[1])


def cupy(wheel: RemoteWheel, version: str, requirements: tuple[Requirement, ...]) -> BuildFacts:
    """CUDA is in its name: cupy-cuda102 is for 10.2, cupy-cuda12x for any 12."""
    folder = wheel.find(r"cupy_cuda\d+x?-.*/METADATA") or ""
    digits, minor_open = re.findall(r"cuda(\d+)(x?)-", folder)[0]
    cuda = digits if minor_open else f"{digits[:-1]}.{digits[-1]}"
    described = json.loads(wheel.text(r"cupy/\.data/_wheel\.json") or "{}")
    bundled = wheel.find(r"cupy/_lib/libcudnn\.so\.\d+")
    cudnn = described.get("cudnn", {}).get("version", "")
    return BuildFacts(cuda, cudnn or (bundled.rpartition(".so.")[2] if bundled else ""))


READERS: dict[str, BuildReader] = {
    "tensorflow": tensorflow,
    "tensorflow-gpu": tensorflow,
    "torch": torch,
    "onnxruntime-gpu": onnxruntime,
    **{f"jax-cuda{cuda}-plugin": jax_plugin for cuda in (11, 12, 13)},
    **{f"jax-cuda{cuda}-pjrt": jax_pjrt for cuda in (12, 13)},
}


def reader_of(package: str) -> BuildReader | None:
    return cupy if package.startswith("cupy-cuda") else READERS.get(package)
