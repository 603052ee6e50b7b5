"""TensorFlow: what it was built for, and the CUDA libraries that it opens by name."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from typing import Any, NamedTuple

from whygpu.collectors.frameworks.shared import (
    Loader,
    Scene,
    architectures,
    broken_installation,
    build_without_cuda,
    constants,
    cpu_features,
    cuda_needs,
    follow,
    module_folder,
    no_cuda,
    open_needs,
    wheel_requirement,
)
from whygpu.host.base import Host
from whygpu.model.libraries import Resolution
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.target import Build, BuildKind, Framework, Package
from whygpu.tables.cuda_libraries import cudnn_soname, soname
from whygpu.tables.distributions import provider
from whygpu.tables.tensorflow_builds import build_of, loads_of
from whygpu.tables.versions import release_numbers

# The first existing file contains the code that opens libraries by name, so its RUNPATH decides
# where the loader searches. The last one is the imported module. All may contain kernels.
_BINARIES = (
    "libtensorflow_framework.so.2",
    "libtensorflow_framework.so.1",
    "libtensorflow_framework.so",
    "libtensorflow_cc.so.2",
    "python/_pywrap_tensorflow_internal.so",
    "python/_pywrap_tensorflow.so",
)
_DRIVER_LIBRARIES = {"cuda": "libcuda.so.1", "nvidia-ml": "libnvidia-ml.so.1"}


class _Installation(NamedTuple):
    scene: Scene
    package: Package
    binaries: tuple[str, ...]
    stated: dict[str, Any]
    """The contents of build_info.py, which vary between releases. It does not exist before 1.4."""
    stated_in: str

    def says(self, *keys: str) -> Known[str] | None:
        texts = (self.stated.get(key) for key in keys)
        return next((Known(text, self.stated_in) for text in texts if isinstance(text, str)), None)


def collect(scene: Scene) -> Iterator[Framework]:
    package = scene.provider("tensorflow", "tensorflow")
    if package is None:
        return
    folder = module_folder(scene.host, package, *_folder_names(package))
    if folder is None:
        yield broken_installation("tensorflow", package)
        return
    info = os.path.join(folder, "python/platform/build_info.py")
    installation = _Installation(
        scene=scene,
        package=package,
        binaries=_existing(scene.host, (os.path.join(folder, name) for name in _BINARIES)),
        stated=_build_info(scene.host, info),
        stated_in=info,
    )
    build = _build(installation)
    yield Framework(
        name="tensorflow",
        distribution=package.name,
        version=package.version,
        location=folder,
        build=build,
        libraries=_libraries(installation, build),
    )


def _folder_names(package: Package) -> tuple[str, ...]:
    """From 1.15 to 2.1 the code was in tensorflow_core, and tensorflow only imported it."""
    if (1, 15) <= release_numbers(package.version) < (2, 2):
        return ("tensorflow_core", "tensorflow")
    return ("tensorflow",)


def _existing(host: Host, paths: Iterator[str]) -> tuple[str, ...]:
    return tuple(path for path in paths if isinstance(host.stat(path), Known))


def _build_info(host: Host, path: str) -> dict[str, Any]:
    """The facts in build_info.py: a dictionary since 2.3, module variables before."""
    values = constants(host, path)
    if not isinstance(values, Known):
        return {}
    facts = values.value
    try:
        return {**facts, **dict(facts.get("build_info", ()))}
    except (TypeError, ValueError):
        return facts


def _build(installation: _Installation) -> Build:
    host = installation.scene.host
    kind = _kind(installation)
    features = cpu_features(host, installation.package)
    if not isinstance(kind, Known) or kind.value != "cuda":
        return build_without_cuda(kind, features)
    return Build(
        kind=kind,
        cuda=_cuda(installation),
        cudnn=_cudnn(installation),
        architectures=architectures(host, installation.binaries),
        cpu_features=features,
    )


def _kind(installation: _Installation) -> Observed[BuildKind]:
    package = installation.package
    metal = installation.scene.package("tensorflow-metal")
    if metal is not None:
        return Known("metal", f"{metal.name} {metal.version}")
    row = provider(package.name)
    if row is not None and row.kind is not None:
        return Known(row.kind, f"the distribution's name, {package.name}")
    stated = installation.stated
    if "is_cuda_build" in stated:
        kind: BuildKind = "cuda" if stated["is_cuda_build"] else "cpu"
        return Known("rocm" if stated.get("is_rocm_build") else kind, installation.stated_in)
    if not installation.binaries:
        return Unknown(f"no TensorFlow binary in {package.location}")
    needs = _linked_libraries(installation)
    if isinstance(needs, Unknown):
        return needs
    return Known("cuda" if needs else "cpu", f"libraries that {installation.binaries[0]} needs")


def _cuda(installation: _Installation) -> Observed[str]:
    package = installation.package
    answers = (answer for answer in _cuda_answers(installation) if answer is not None)
    unknown = Unknown(f"the CUDA version of {package.name} {package.version} is not on record")
    return next(answers, unknown)


def _cuda_answers(installation: _Installation) -> Iterator[Known[str] | None]:
    stated = installation.says("cuda_version", "cuda_version_number")
    # Some releases state only "10", which is not enough to know the libraries' names.
    if stated is not None and "." in stated.value:
        yield stated
    yield _linked_version(installation, "libcudart.so.")
    row = build_of(installation.package.version)
    yield None if row is None else Known(row.cuda, row.source)
    yield stated
    yield wheel_requirement(
        installation.scene.host,
        installation.package,
        r"nvidia-cuda-runtime-cu\d+.*?[>=]=(\d+\.\d+)",
    )


def _cudnn(installation: _Installation) -> Observed[str]:
    package = installation.package
    answers = (answer for answer in _cudnn_answers(installation) if answer is not None)
    unknown = Unknown(f"the cuDNN version of {package.name} {package.version} is not on record")
    return next(answers, unknown)


def _cudnn_answers(installation: _Installation) -> Iterator[Known[str] | None]:
    yield installation.says("cudnn_version", "cudnn_version_number")
    yield _linked_version(installation, "libcudnn.so.")
    row = build_of(installation.package.version)
    yield None if row is None else Known(row.cudnn, row.source)
    yield wheel_requirement(
        installation.scene.host, installation.package, r"nvidia-cudnn-cu\d+.*?[>=]=(\d+)"
    )


def _linked_libraries(installation: _Installation) -> dict[str, str] | Unknown:
    """NVIDIA's libraries that the binaries are linked with, each with the first file that needs
    it."""
    requesters: dict[str, str] = {}
    for path in installation.binaries:
        needs = cuda_needs(installation.scene.host, path)
        if isinstance(needs, Unknown):
            return needs
        for name in needs.value if isinstance(needs, Known) else ():
            requesters.setdefault(name, path)
    return requesters


def _linked_version(installation: _Installation, prefix: str) -> Known[str] | None:
    needs = _linked_libraries(installation)
    if isinstance(needs, Unknown):
        return None
    return next(
        (
            Known(name[len(prefix) :], f"libraries that {path} needs")
            for name, path in needs.items()
            if name.startswith(prefix)
        ),
        None,
    )


def _libraries(installation: _Installation, build: Build) -> Observed[tuple[Resolution, ...]]:
    if not isinstance(build.kind, Known) or build.kind.value != "cuda":
        return no_cuda(build.kind)
    if not installation.binaries:
        return Unknown(f"no TensorFlow binary in {installation.package.location}")
    if loads_of(installation.package.version):
        return _opened_by_name(installation, build)
    return _linked(installation)


def _opened_by_name(installation: _Installation, build: Build) -> Observed[tuple[Resolution, ...]]:
    if not isinstance(build.cuda, Known):
        return build.cuda
    if not isinstance(build.cudnn, Known):
        return build.cudnn
    names = {"cudnn": cudnn_soname(build.cudnn.value), **_DRIVER_LIBRARIES}
    wanted: list[tuple[str, bool]] = []
    for load in loads_of(installation.package.version):
        name = names.get(load.library) or soname(load.library, build.cuda.value)
        if name is None:
            return Unknown(
                f"the file name of {load.library} in CUDA {build.cuda.value} is not on record"
            )
        wanted.append((name, load.required))
    opener, module = installation.binaries[0], installation.binaries[-1]

    def steps(loader: Loader) -> Iterator[Resolution]:
        imported = loader.open(module, requester=installation.scene.interpreter.path)
        if imported.outcome != "loads":
            yield imported
            return
        for name, required in wanted:
            yield loader.open(name, requester=opener, required=required)

    return follow(installation.scene, steps, opener)


def _linked(installation: _Installation) -> Observed[tuple[Resolution, ...]]:
    """Up to 1.13 the libraries are linked, and `import tensorflow` fails without any of them."""
    requesters = _linked_libraries(installation)
    if isinstance(requesters, Unknown):
        return requesters
    python = installation.scene.interpreter.path

    def steps(loader: Loader) -> Iterator[Resolution]:
        for path in installation.binaries:
            needs = [name for name, requester in requesters.items() if requester == path]
            yield from open_needs(loader, python, path, needs)

    return follow(installation.scene, steps, ", ".join(installation.binaries))
