"""The Python environment under examination: interpreter, packages, frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from whygpu.model.driver import NOT_LOOKED
from whygpu.model.libraries import Resolution
from whygpu.model.observed import Observed
from whygpu.model.system import OperatingSystem

FrameworkName = Literal["tensorflow", "keras", "jax", "torch", "cupy", "onnxruntime", "numba"]
BuildKind = Literal["cpu", "cuda", "rocm", "xpu", "metal", "directml", "other"]


class FoundModule(NamedTuple):
    """Where an import in the target would find a framework, according to its own finders."""

    name: str
    place: Observed[str]
    """The package's folder, or its place in an archive; absent if an import finds nothing."""


class Interpreter(NamedTuple):
    path: str
    version: str
    implementation: str
    prefix: str
    isolated: bool
    """It is a virtual or conda environment."""
    user_site: Observed[str]
    """The user site folder on its path; absent if it is switched off."""
    paths: tuple[str, ...]
    """sys.path, in order."""
    wheel_tags: tuple[str, ...]
    """The interpreter's own tags, most specific first: cp311, abi3, ..., and its platform."""
    modules: Observed[tuple[FoundModule, ...]] = NOT_LOOKED
    """The modules of the frameworks that can be run, and numpy, as the target itself finds them."""
    complaints: Observed[tuple[str, ...]] = NOT_LOOKED
    """Errors of files that Python runs at every start: sitecustomize, usercustomize, .pth."""
    in_current_folder: Observed[tuple[FoundModule, ...]] = NOT_LOOKED
    """Other modules of those names in the folder where whygpu was started. The examined packages
    are seen without that folder; a program that lies in it imports them from there."""

    @property
    def free_threaded(self) -> bool:
        """It is a build without the global interpreter lock, whose tag is cp314t."""
        return any(tag.startswith("cp") and tag.endswith("t") for tag in self.wheel_tags)

    @property
    def build(self) -> str:
        """The version, with the t that names free-threaded builds: 3.11.9, 3.14.0t."""
        return f"{self.version}t" if self.free_threaded else self.version


class Package(NamedTuple):
    """One installed distribution. Only packages that matter to GPU use have requirements here."""

    name: str
    """Normalised: lower case, dashes."""
    version: str
    location: str
    """The folder on sys.path that contains it."""
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
    """The installed version; absent if none is installed."""


class Build(NamedTuple):
    """What a framework's binaries were built for."""

    kind: Observed[BuildKind]
    cuda: Observed[str]
    cudnn: Observed[str]
    architectures: Observed[tuple[str, ...]]
    """Machine code as sm_80, intermediate code as compute_90, read from the binaries."""
    cpu_features: Observed[tuple[str, ...]]
    """Instruction sets that its binaries use without checking for them."""
    amd_targets: Observed[tuple[str, ...]] = NOT_LOOKED
    """AMD GPUs (gfx90a) that a ROCm build has code for; absent for other builds."""


class Plugin(NamedTuple):
    """A distribution that adds GPU support to a framework (JAX)."""

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
    """Libraries that it loads at run time, in loading order; absent for CPU builds."""
    plugins: tuple[Plugin, ...] = ()
    keras: KerasSetup | None = None


ManagerName = Literal["conda", "hatch", "pdm", "pipenv", "pixi", "poetry", "uv"]


class Manager(NamedTuple):
    """A tool that keeps its own list of the packages in the target environment."""

    name: ManagerName
    project: str
    """The folder of the project, for pixi its manifest; empty if it is unknown or there is none."""
    certain: bool
    """The environment is the tool's own. If False, only the tool's lock file is next to it."""
    declared: tuple[str, ...] = ()
    """Names of the packages that the project itself lists, normalised."""
    feature: str = ""
    """pixi: the feature that gets packages of this environment; empty if several could."""


class Installer(NamedTuple):
    """How packages are installed into the target environment."""

    python: str
    """The command that starts the target's interpreter: python if PATH finds it, else its path."""
    tool: Literal["pip", "uv"]
    """uv for an environment without pip that uv created, or if uv is on PATH."""
    externally_managed: bool
    """The operating system's own Python, which pip refuses to change."""
    has_pip: bool = True
    system: OperatingSystem = "linux"
    """The system on which the commands are pasted."""
    manager: Observed[Manager] = NOT_LOOKED


PLAIN_PIP = Installer("python", "pip", False)
"""Used if no machine is known, for example for a pasted log."""


class Target(NamedTuple):
    interpreter: Observed[Interpreter]
    packages: Observed[tuple[Package, ...]]
    conflicts: Observed[tuple[RequirementConflict, ...]]
    frameworks: Observed[tuple[Framework, ...]]
    installer: Observed[Installer] = NOT_LOOKED


def active(packages: tuple[Package, ...]) -> Iterator[Package]:
    """The packages that an import would find: not those that another copy hides."""
    return (package for package in packages if not package.shadowed)
