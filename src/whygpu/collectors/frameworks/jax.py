"""JAX: the plugin that adds GPU support, and the CUDA libraries that the plugin loads."""

from __future__ import annotations

import ast
import os.path
import re
from collections.abc import Iterator

from whygpu.collectors.frameworks.shared import (
    UNPARSABLE,
    Loader,
    Scene,
    architectures,
    build_without_cuda,
    cpu_features,
    follow,
    literal_of,
    module_folder,
    no_cuda,
    wheel_requirement,
)
from whygpu.host.base import Host
from whygpu.model.libraries import Resolution
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.target import Build, BuildKind, Framework, Package, Plugin, active
from whygpu.tables.cuda_libraries import cudnn_soname, soname

_PLUGIN = re.compile(r"jax-(?P<kind>cuda|rocm|oneapi)(?P<major>\d*)-(?:plugin|pjrt)|jax-metal")
_KINDS: dict[str | None, BuildKind] = {
    "cuda": "cuda",
    "rocm": "rocm",
    "oneapi": "xpu",
    None: "metal",
}
_MONOLITHIC = re.compile(r"\+cuda(?P<cuda>\d+)(?:\.cudnn(?P<cudnn>\d+))?")

# The version check that refuses the GPU loads these, in this order, on behalf of _versions.so.
# Observed with LD_DEBUG=libs on jax-cuda12-plugin 0.12.0.1.
_CHECKED = ("cudnn", "cufft", "cupti", "cublas", "cusparse")


def collect(scene: Scene) -> Iterator[Framework]:
    package = scene.provider("jax", "jax")
    if package is None:
        return
    jaxlib = scene.package("jaxlib")
    plugins = _plugins(scene)
    build = _build(scene, package, jaxlib, plugins)
    yield Framework(
        name="jax",
        distribution=package.name,
        version=package.version,
        location=module_folder(scene.host, package, "jax") or package.location,
        build=build,
        libraries=_libraries(scene, build, plugins),
        plugins=tuple(Plugin(plugin.name, plugin.version) for plugin in plugins),
    )


def _plugins(scene: Scene) -> tuple[Package, ...]:
    """The distributions with GPU support. An old jaxlib that contains CUDA is one of them."""
    return tuple(
        package
        for package in active(scene.packages)
        if _PLUGIN.fullmatch(package.name)
        or (package.name == "jaxlib" and _MONOLITHIC.search(package.version))
    )


def _build(
    scene: Scene, package: Package, jaxlib: Package | None, plugins: tuple[Package, ...]
) -> Build:
    if jaxlib is None:
        missing = Unknown(f"jaxlib, which has the binaries of jax {package.version}, is missing")
        return Build(missing, missing, missing, missing, missing)
    features = cpu_features(scene.host, jaxlib)
    kind = _kind(plugins, jaxlib)
    if kind.value != "cuda":
        return build_without_cuda(kind, features)
    return Build(
        kind=kind,
        cuda=_cuda(plugins),
        cudnn=_cudnn(scene.host, plugins),
        architectures=architectures(scene.host, _kernel_files(scene, plugins)),
        cpu_features=features,
    )


def _kind(plugins: tuple[Package, ...], jaxlib: Package) -> Known[BuildKind]:
    for plugin in plugins:
        match = _PLUGIN.fullmatch(plugin.name)
        kind = _KINDS[match["kind"]] if match else "cuda"
        return Known(kind, f"{plugin.name} {plugin.version}")
    return Known("cpu", f"jaxlib {jaxlib.version} without a plugin for GPUs")


def _cuda(plugins: tuple[Package, ...]) -> Observed[str]:
    for plugin in plugins:
        match = _MONOLITHIC.search(plugin.version)
        major = match["cuda"] if match else _major(plugin)
        if major:
            return Known(major, f"the name of {plugin.name} {plugin.version}")
    return Unknown("the CUDA plugin's name does not say which CUDA release it is for")


def _cudnn(host: Host, plugins: tuple[Package, ...]) -> Observed[str]:
    for plugin in plugins:
        match = _MONOLITHIC.search(plugin.version)
        if match and match["cudnn"]:
            return Known(".".join(match["cudnn"]), f"the version of {plugin.name}")
        wanted = wheel_requirement(host, plugin, r"nvidia-cudnn-cu\d+.*?>=([\d.]+)")
        if wanted is not None:
            return wanted
    return Unknown("the metadata of the CUDA plugin does not say which cuDNN it needs")


def _major(plugin: Package) -> str | None:
    match = _PLUGIN.fullmatch(plugin.name)
    return match["major"] if match else None


def _pjrt_folder(scene: Scene, plugins: tuple[Package, ...]) -> str | None:
    for plugin in plugins:
        if plugin.name.endswith("-pjrt"):
            name = f"jax_plugins/xla_cuda{_major(plugin) or ''}"
            return module_folder(scene.host, plugin, name)
    return None


def _extension_folder(scene: Scene, plugins: tuple[Package, ...]) -> str | None:
    for plugin in plugins:
        if plugin.name.endswith("-plugin"):
            return module_folder(scene.host, plugin, plugin.name.replace("-", "_"))
    return None


def _kernel_files(scene: Scene, plugins: tuple[Package, ...]) -> tuple[str, ...]:
    pjrt = _pjrt_folder(scene, plugins)
    if pjrt is not None:
        return (os.path.join(pjrt, "xla_cuda_plugin.so"),)
    return tuple(
        os.path.join(plugin.location, "jaxlib/xla_extension.so")
        for plugin in plugins
        if plugin.name == "jaxlib"
    )


def _libraries(
    scene: Scene, build: Build, plugins: tuple[Package, ...]
) -> Observed[tuple[Resolution, ...]]:
    if not isinstance(build.kind, Known) or build.kind.value != "cuda":
        return no_cuda(build.kind)
    pjrt, extension = _pjrt_folder(scene, plugins), _extension_folder(scene, plugins)
    if pjrt is None or extension is None:
        return Unknown(
            "only a CUDA plugin in two parts, jax-cuda*-plugin and -pjrt, can be followed"
        )
    if not isinstance(build.cuda, Known):
        return build.cuda
    if not isinstance(build.cudnn, Known):
        return build.cudnn
    cuda, cudnn = build.cuda.value, build.cudnn.value

    def steps(loader: Loader) -> Iterator[Resolution]:
        return _steps(scene, loader, pjrt, extension, cuda, cudnn)

    return follow(scene, steps, extension)


def _steps(
    scene: Scene, loader: Loader, pjrt: str, extension: str, cuda: str, cudnn: str
) -> Iterator[Resolution]:
    """What happens from `import jax` to the first query for devices, in that order."""
    python = scene.interpreter.path
    solver = os.path.join(extension, "_solver.so")
    versions = os.path.join(extension, "_versions.so")
    runtime = os.path.join(pjrt, "xla_cuda_plugin.so")
    modules = [loader.open(path, requester=python) for path in (solver, versions, runtime)]
    broken = [module for module in modules if module.outcome != "loads"]
    if broken:
        yield from broken
        return
    yield loader.open(_name("cudart", cuda), requester=solver)
    # Copies from wheels are loaded by path first and then satisfy requests for their names. A copy
    # that cannot be loaded is skipped silently, so it is not a result of its own.
    for path in _preloaded(scene, pjrt):
        loader.open(path, requester=python, required=False)
    yield loader.open("libcuda.so.1", requester=versions)
    for library in _CHECKED:
        name = cudnn_soname(cudnn) if library == "cudnn" else _name(library, cuda)
        yield loader.open(name, requester=versions)
    yield loader.open(_name("cusolver", cuda), requester=solver, required=False)
    yield loader.open("libnccl.so.2", requester=runtime, required=False)


def _name(library: str, cuda: str) -> str:
    # For a release that is not on record yet, use the naming rule of the latest ones.
    return soname(library, cuda) or f"lib{library}.so.{cuda.partition('.')[0]}"


def _preloaded(scene: Scene, pjrt: str) -> Iterator[str]:
    """Paths that the plugin loads first: its own list, read from its source."""
    text = scene.host.read(os.path.join(pjrt, "__init__.py"))
    if not isinstance(text, Known):
        return
    try:
        module = ast.parse(text.value)
    except UNPARSABLE:
        return
    for node in ast.walk(module):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
            continue
        if node.func.id == "_load" and len(node.args) == 2:
            (named, package), (listed, libraries) = map(literal_of, node.args)
            folder = _nvidia_folder(scene, package) if named and listed else None
            if folder is not None:
                yield from (os.path.join(folder, "lib", library) for library in libraries)


def _nvidia_folder(scene: Scene, package: str) -> str | None:
    for path in scene.interpreter.paths:
        folder = os.path.join(path, "nvidia", package)
        if isinstance(scene.host.stat(folder), Known):
            return folder
    return None
