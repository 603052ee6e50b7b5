"""CuPy, ONNX Runtime and Numba: whether they are installed, and which build."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator

from whygpu.collectors.frameworks.shared import (
    Scene,
    build_without_cuda,
    constants,
    cpu_features,
    module_folder,
    no_cuda,
)
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.target import Build, BuildKind, Framework, FrameworkName, Package, Plugin
from whygpu.tables.distributions import provider

_NAMES: tuple[FrameworkName, ...] = ("cupy", "onnxruntime", "numba")

_ONNXRUNTIME = os.path.join("onnxruntime", "capi")

# ONNX Runtime keeps the code for each kind of device in a separate file.
_PROVIDERS: tuple[tuple[str, BuildKind], ...] = (
    ("libonnxruntime_providers_cuda.so", "cuda"),
    ("libonnxruntime_providers_rocm.so", "rocm"),
    ("libonnxruntime_providers_migraphx.so", "rocm"),
    ("libonnxruntime_providers_openvino.so", "other"),
    ("DirectML.dll", "directml"),
)


def collect(scene: Scene) -> Iterator[Framework]:
    for name in _NAMES:
        package = scene.provider(name, name)
        if package is None:
            continue
        stated = _stated(scene, package) if name == "onnxruntime" else {}
        kind = _onnxruntime_kind(scene, package, stated) if stated else _kind(scene, package)
        yield Framework(
            name=name,
            distribution=stated.get("package_name", package.name),
            version=stated.get("__version__", package.version),
            location=module_folder(scene.host, package, name) or package.location,
            build=_build(scene, package, kind, stated),
            libraries=_libraries(package, kind),
            plugins=_plugins(scene, name),
        )


def _stated(scene: Scene, package: Package) -> dict[str, str]:
    """What ONNX Runtime's own file says about the installed binaries.

    The distributions for CPU and GPU overwrite each other's files, but the metadata of both stay.
    This file always belongs to the installed binaries.
    """
    path = os.path.join(package.location, _ONNXRUNTIME, "build_and_package_info.py")
    values = constants(scene.host, path)
    if not isinstance(values, Known):
        return {}
    return {key: value for key, value in values.value.items() if isinstance(value, str)}


def _onnxruntime_kind(
    scene: Scene, package: Package, stated: dict[str, str]
) -> Observed[BuildKind]:
    owner = provider(stated.get("package_name", ""))
    if owner is not None and owner.name == "onnxruntime":
        return Known("cpu", "the name in onnxruntime's own files")
    if owner is not None and owner.kind is not None:
        return Known(owner.kind, f"the name in its own files, {owner.name}")
    return _kind(scene, package)


def _kind(scene: Scene, package: Package) -> Observed[BuildKind]:
    row = provider(package.name)
    if row is not None and row.kind is not None:
        return Known(row.kind, f"the distribution's name, {package.name}")
    folder = os.path.join(package.location, _ONNXRUNTIME)
    names = scene.host.list(folder)
    if not isinstance(names, Known):
        return Unknown(f"{folder} cannot be read")
    for file, kind in _PROVIDERS:
        if file in names.value:
            return Known(kind, os.path.join(folder, file))
    return Known("cpu", f"no provider for GPUs in {folder}")


def _build(
    scene: Scene, package: Package, kind: Observed[BuildKind], stated: dict[str, str]
) -> Build:
    features = cpu_features(scene.host, package)
    if not isinstance(kind, Known) or kind.value != "cuda":
        return build_without_cuda(kind, features)
    unread = Unknown(f"the binaries of {package.name} are not read")
    return Build(kind, _cuda(package, stated), unread, unread, features)


def _libraries(package: Package, kind: Observed[BuildKind]) -> Absent | Unknown:
    if isinstance(kind, Known) and kind.value == "cuda":
        return Unknown(f"the libraries that {package.name} loads are not checked")
    return no_cuda(kind)


def _cuda(package: Package, stated: dict[str, str]) -> Observed[str]:
    """ONNX Runtime states it; cupy-cuda12x and cupy-cuda102 have it in their names."""
    if "cuda_version" in stated:
        return Known(stated["cuda_version"], "onnxruntime/capi/build_and_package_info.py")
    match = re.fullmatch(r"cupy-cuda(\d+?)(x|\d)", package.name)
    if match is None:
        return Unknown(f"the name of {package.name} does not say which CUDA release it is for")
    version = match[1] if match[2] == "x" else f"{match[1]}.{match[2]}"
    return Known(version, f"the distribution's name, {package.name}")


def _plugins(scene: Scene, framework: FrameworkName) -> tuple[Plugin, ...]:
    package = scene.package("numba-cuda") if framework == "numba" else None
    return (Plugin(package.name, package.version),) if package else ()
