"""PyTorch: its build, and the CUDA libraries that it is linked with."""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterator
from typing import Any

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
)
from whygpu.model.libraries import Resolution
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.target import Build, BuildKind, Framework, Package

# Older releases have the CUDA code in two files, and the oldest have all of it in libtorch.so.
_CUDA_BINARIES = (
    "libtorch_cuda.so",
    "libtorch_cuda_cu.so",
    "libtorch_cuda_cpp.so",
    "libtorch_cuda_linalg.so",
    "libtorch.so",
)

# Loaded by the first operation that needs it.
_ON_DEMAND = "libtorch_cuda_linalg.so"

# Folders of NVIDIA's wheels, in the order in which torch loads their libraries by path.
_PRELOADED = (
    ("cublas", "libcublasLt"),
    ("cublas", "libcublas"),
    ("cudnn", "libcudnn"),
    ("cuda_nvrtc", "libnvrtc"),
    ("cuda_runtime", "libcudart"),
    ("cuda_cupti", "libcupti"),
    ("cufft", "libcufft"),
    ("curand", "libcurand"),
    ("nvjitlink", "libnvJitLink"),
    ("cusparse", "libcusparse"),
    ("cusparselt", "libcusparseLt"),
    ("cusolver", "libcusolver"),
    ("nccl", "libnccl"),
    ("nvshmem", "libnvshmem_host"),
    ("cufile", "libcufile"),
)


def collect(scene: Scene) -> Iterator[Framework]:
    package = scene.provider("torch", "torch")
    if package is None:
        return
    folder = module_folder(scene.host, package, "torch")
    if folder is None:
        yield broken_installation("torch", package)
        return
    yield _described(scene, package, folder, _stated(scene, folder))


def without_metadata(scene: Scene, folder: str) -> Framework | None:
    """A copy that no package describes, by the version file that a build writes; None without."""
    stated = _stated(scene, folder)
    if not isinstance(stated, Known) or not {"__version__", "cuda"} <= stated.value.keys():
        return None
    package = Package(
        name="torch",
        version=str(stated.value["__version__"]),
        location=os.path.dirname(folder),
        shadowed=False,
        requires=(),
        wheel_tags=(),
    )
    return _described(scene, package, folder, stated)


def _stated(scene: Scene, folder: str) -> Observed[dict[str, Any]]:
    return constants(scene.host, os.path.join(folder, "version.py"))


def _described(
    scene: Scene, package: Package, folder: str, stated: Observed[dict[str, Any]]
) -> Framework:
    binaries = tuple(os.path.join(folder, "lib", name) for name in _CUDA_BINARIES)
    build = _build(scene, package, binaries, stated)
    return Framework(
        name="torch",
        distribution=package.name,
        version=_version(stated, package),
        location=folder,
        build=build,
        libraries=_libraries(scene, folder, binaries, build),
    )


def _build(
    scene: Scene,
    package: Package,
    binaries: tuple[str, ...],
    stated: Observed[dict[str, Any]],
) -> Build:
    kind = _kind(scene, stated)
    features = cpu_features(scene.host, package)
    if not isinstance(stated, Known) or not isinstance(kind, Known) or kind.value != "cuda":
        return build_without_cuda(kind, features)
    return Build(
        kind=kind,
        cuda=Known(str(stated.value["cuda"]), stated.source),
        cudnn=_cudnn(scene, package, binaries),
        architectures=architectures(scene.host, binaries),
        cpu_features=features,
    )


def _version(stated: Observed[dict[str, Any]], package: Package) -> str:
    """The version in the module itself: of two metadata folders, only one is right."""
    version = stated.value.get("__version__") if isinstance(stated, Known) else None
    return version if isinstance(version, str) else package.version


def _kind(scene: Scene, stated: Observed[dict[str, Any]]) -> Observed[BuildKind]:
    if isinstance(stated, Unknown):
        return stated
    if isinstance(stated, Absent):
        return Unknown(f"{stated.source} is missing")
    kinds: tuple[tuple[str, BuildKind], ...] = (("hip", "rocm"), ("cuda", "cuda"), ("xpu", "xpu"))
    for key, kind in kinds:
        if stated.value.get(key):
            return Known(kind, stated.source)
    if scene.host.platform.system == "Darwin":
        return Known("metal", f"{stated.source}, on macOS")
    return Known("cpu", stated.source)


def _cudnn(scene: Scene, package: Package, binaries: tuple[str, ...]) -> Observed[str]:
    for line in package.requires:
        match = re.match(r"nvidia-cudnn-cu\d+\s*\(?==([\d.]+)", line)
        if match:
            return Known(match[1], f"what {package.name} {package.version} requires")
    for path in binaries:
        needs = cuda_needs(scene.host, path)
        for name in needs.value if isinstance(needs, Known) else ():
            match = re.match(r"libcudnn.*\.so\.(\d+)", name)
            if match:
                return Known(match[1], f"libraries that {path} needs")
    return Unknown(f"nothing in {package.name} {package.version} says which cuDNN it needs")


def _libraries(
    scene: Scene, folder: str, binaries: tuple[str, ...], build: Build
) -> Observed[tuple[Resolution, ...]]:
    if not isinstance(build.cuda, Known):
        return no_cuda(build.kind)
    requesters: dict[str, str] = {}
    for path in binaries:
        needs = cuda_needs(scene.host, path)
        if isinstance(needs, Unknown):
            return needs
        for name in needs.value if isinstance(needs, Known) else ():
            requesters.setdefault(name, path)
    if not requesters:
        return Unknown(f"no file of {os.path.join(folder, 'lib')} is linked with a CUDA library")
    cuda = build.cuda.value

    def steps(loader: Loader) -> Iterator[Resolution]:
        _load_first(scene, loader, folder, cuda)
        runtime = scene.interpreter.path
        for path in dict.fromkeys(requesters.values()):
            needs = [name for name, requester in requesters.items() if requester == path]
            required = os.path.basename(path) != _ON_DEMAND
            for answer in open_needs(
                loader, scene.interpreter.path, path, needs, required=required
            ):
                if answer.library.startswith("libcudart") and answer.outcome == "loads":
                    runtime = answer.path or runtime
                yield answer
        # The runtime opens the driver's library on the first query for a device.
        yield loader.open("libcuda.so.1", requester=runtime)

    return follow(scene, steps, ", ".join(dict.fromkeys(requesters.values())))


def _load_first(scene: Scene, loader: Loader, folder: str, cuda: str) -> None:
    """Load what `import torch` loads before its own code, because it satisfies later requests."""
    python = scene.interpreter.path
    dependencies = os.path.join(folder, "lib", "libtorch_global_deps.so")
    first = loader.open(dependencies, requester=python)
    source = scene.host.read(os.path.join(folder, "__init__.py"))
    # Some releases always load the wheels' copies by path, others only if needed. Those that always
    # do it first check whether the CUDA runtime is already mapped.
    always = isinstance(source, Known) and "/proc/self/maps" in source.value
    if first.outcome == "loads" and not always:
        return
    for path in _wheel_copies(scene, cuda):
        loader.open(path, requester=python, required=False)
    if first.outcome != "loads":
        loader.open(dependencies, requester=python)


def _wheel_copies(scene: Scene, cuda: str) -> Iterator[str]:
    """The copy in NVIDIA's wheels of each library that torch loads by path, if there is one."""
    contents: dict[str, tuple[str, ...]] = {}
    for folder, library in _PRELOADED:
        pattern = re.compile(re.escape(library) + r"\.so\..*\d")
        for path in _wheel_folders(scene, folder, cuda):
            if path not in contents:
                names = scene.host.list(path)
                contents[path] = names.value if isinstance(names, Known) else ()
            copy = next((name for name in contents[path] if pattern.fullmatch(name)), None)
            if copy is not None:
                yield os.path.join(path, copy)
                break


def _wheel_folders(scene: Scene, folder: str, cuda: str) -> Iterator[str]:
    """Each library has its own folder before CUDA 13; since then they share one."""
    for path in scene.interpreter.paths:
        for name in (folder, f"cu{cuda.partition('.')[0]}"):
            yield os.path.join(path, "nvidia", name, "lib")
