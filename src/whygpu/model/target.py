"""The Python environment under examination: interpreter, packages, frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from whygpu.model.driver import NOT_LOOKED
from whygpu.model.libraries import Resolution
from whygpu.model.observed import Observed, Unknown

FrameworkName = Literal["tensorflow", "keras", "jax", "torch", "cupy", "onnxruntime", "numba"]
BuildKind = Literal["cpu", "cuda", "rocm", "metal", "directml", "other"]


class FoundModule(NamedTuple):
    """Where an import in the target would find a framework, by the word of its own finders."""

    name: str
    place: Observed[str]
    """The package's folder, or its place in an archive; absent when an import finds nothing."""


class Interpreter(NamedTuple):
    path: str
    version: str
    implementation: str
    prefix: str
    isolated: bool
    """A virtual or conda environment of its own."""
    user_site: Observed[str]
    """The user site folder on its path; absent when it is switched off."""
    paths: tuple[str, ...]
    """sys.path, in order."""
    wheel_tags: tuple[str, ...]
    """The interpreter's own tags, most specific first: cp311, abi3, ..., and its platform."""
    modules: Observed[tuple[FoundModule, ...]] = NOT_LOOKED
    """Of the frameworks that can be run, as the target itself finds them."""
    complaints: Observed[tuple[str, ...]] = NOT_LOOKED
    """Errors of files that Python runs at every start: sitecustomize, usercustomize, .pth."""


class Package(NamedTuple):
    """One installed distribution. Only packages that matter to GPU use carry requirements."""

    name: str
    """Normalised: lower case, dashes."""
    version: str
    location: str
    """The folder on sys.path that holds it."""
    shadowed: bool
    """Another copy comes first on sys.path."""
    requires: tuple[str, ...]
    """Requires-Dist lines whose markers hold in the target, without extras."""
    wheel_tags: tuple[str, ...]


class RequirementConflict(NamedTuple):
    """An installed package that another installed package cannot work with."""

    package: str
    requirement: str
    found: Observed[str]
    """The version that is installed; absent when nothing is."""


class Build(NamedTuple):
    """What a framework's binaries were built for."""

    kind: Observed[BuildKind]
    cuda: Observed[str]
    cudnn: Observed[str]
    architectures: Observed[tuple[str, ...]]
    """Machine code as sm_80, intermediate code as compute_90, read from the binaries."""
    cpu_features: Observed[tuple[str, ...]]
    """Instruction sets that its binaries use without asking."""


class Plugin(NamedTuple):
    """A distribution that brings a framework its GPU support (JAX)."""

    name: str
    version: str


class KerasSetup(NamedTuple):
    backend: Observed[str]
    """The configured backend, with where it is configured as its source."""
    generation: Literal["keras-2", "keras-3", "tf-keras"]


class Framework(NamedTuple):
    name: FrameworkName
    distribution: str
    """The package that provides it (tensorflow-cpu, cupy-cuda12x)."""
    version: str
    location: str
    build: Build
    libraries: Observed[tuple[Resolution, ...]]
    """What it loads at run time, in the order in which it does; absent for CPU builds."""
    plugins: tuple[Plugin, ...] = ()
    keras: KerasSetup | None = None


class Installer(NamedTuple):
    """How packages get into the target environment."""

    python: str
    """What a shell starts the target's interpreter with: python where PATH leads to it, else its
    path."""
    tool: Literal["pip", "uv"]
    """uv for an environment without pip that uv has made, or where uv is on PATH."""
    externally_managed: bool
    """The operating system's own Python, which pip refuses to change."""
    has_pip: bool = True


PLAIN_PIP = Installer("python", "pip", False)
"""Where no machine is known, as after a pasted log."""


class Target(NamedTuple):
    interpreter: Observed[Interpreter]
    packages: Observed[tuple[Package, ...]]
    conflicts: Observed[tuple[RequirementConflict, ...]]
    frameworks: Observed[tuple[Framework, ...]]
    installer: Observed[Installer] = Unknown("this snapshot was taken before it was looked for")


def active(packages: tuple[Package, ...]) -> Iterator[Package]:
    """The packages an import would reach: not those another copy hides."""
    return (package for package in packages if not package.shadowed)
