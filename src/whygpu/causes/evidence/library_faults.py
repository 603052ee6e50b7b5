"""Why a library does not load: which cause reports it, and the parts of its message."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from whygpu.causes.evidence.framework_builds import cuda_builds, titled
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.finding import Confidence, Effect, Gap
from whygpu.model.libraries import LibraryCopy, Resolution
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.versions import release_numbers

LibraryFault = Literal[
    "cuda-runtime-missing",
    "cudnn-missing",
    "library-path-conflict",
    "cuda-version-mismatch",
    "cudnn-version-mismatch",
    "library-file-broken",
]

NO_LIBRARY_CONSEQUENCES = (
    "gpu-unused",
    "gpu-index-unchecked",
    "keras-backend-without-gpu",
    "framework-import-fails",
    "device-placement-nonexistent",
)
"""What follows if a framework cannot load a library of CUDA."""
_SYSTEM_VERSIONS = ("GLIBC_", "GLIBCXX_", "CXXABI_", "GCC_")
"""Symbol versions of the system's own libraries, which glibc-too-old reports."""

_OPENS_CUDA = (1, 14)
"""The first TensorFlow release that imports without CUDA libraries."""

_IMPORT_OWN_MODULES = ("tensorflow", "torch")
"""JAX continues without the modules of its plug-in."""

_SILENT_TENSORFLOW = (2, 16)
"""Before this release TensorFlow named the libraries it could not load, at its usual log level."""

_INSTALLABLE: tuple[LibraryFault, ...] = (
    "cuda-runtime-missing",
    "cudnn-missing",
    "cuda-version-mismatch",
    "cudnn-version-mismatch",
)
"""Faults that one installation repairs together."""


class Failure(NamedTuple):
    """One library that does not load, and the requests that fail with it."""

    library: str
    requests: tuple[Resolution, ...]

    @property
    def first(self) -> Resolution:
        return self.requests[0]


def culprit(resolution: Resolution) -> str:
    """The library that fails: the requested one, or one that it needs."""
    return posixpath.basename(resolution.chain[-1]) if resolution.chain else resolution.library


def base_name(soname: str) -> str:
    """A library's name without its version: base_name("libcudnn.so.9") is cudnn."""
    return soname.removeprefix("lib").partition(".so")[0]


def is_driver_library(soname: str) -> bool:
    """libcuda and related libraries come with the driver."""
    return base_name(soname) == "cuda" or base_name(soname).startswith("nvidia-")


def is_cudnn(soname: str) -> bool:
    return base_name(soname).partition("_")[0] == "cudnn"


def fault_of(
    resolution: Resolution, framework: Framework, copies: Sequence[LibraryCopy]
) -> LibraryFault | None:
    """The one cause that reports this result of the loader; None if none does.

    `copies` are the CUDA libraries known to be on the machine, wherever they are.
    """
    library = culprit(resolution)
    if resolution.outcome == "loads" or not resolution.required or is_driver_library(library):
        return None
    if resolution.outcome == "broken-file":
        return "library-file-broken"
    if resolution.outcome == "symbol-missing":
        return "library-path-conflict"
    if resolution.outcome == "version-missing":
        of_system = any(version in resolution.detail for version in _SYSTEM_VERSIONS)
        return None if of_system else "library-path-conflict"
    met = {folder.result for folder in resolution.searched}
    if "broken" in met:
        return "library-file-broken"
    if usable_copies(resolution, framework, copies):
        return "library-path-conflict"
    if "other-architecture" in met:
        return "library-file-broken"
    if other_versions(library, copies):
        return "cudnn-version-mismatch" if is_cudnn(library) else "cuda-version-mismatch"
    return "cudnn-missing" if is_cudnn(library) else "cuda-runtime-missing"


def faults_of(
    framework: Framework, copies: Sequence[LibraryCopy]
) -> list[tuple[Resolution, LibraryFault]]:
    """Every library of a framework that does not load, with the cause that reports it.

    A CUDA release counts as another release only if it contains all missing libraries in its own
    version. A single libcudart of a compiler package does not make this a question of versions.
    """
    judged = [
        (resolution, fault)
        for resolution in libraries_of(framework)
        if (fault := fault_of(resolution, framework, copies)) is not None
    ]
    if not any(fault == "cuda-runtime-missing" for _, fault in judged):
        return judged
    return [
        (resolution, "cuda-runtime-missing" if fault == "cuda-version-mismatch" else fault)
        for resolution, fault in judged
    ]


def usable_copies(
    resolution: Resolution, framework: Framework, copies: Sequence[LibraryCopy]
) -> tuple[str, ...]:
    """Where the failing library exists under the requested name, but is not found.

    A copy in the folder of another CUDA release does not count, even if the name is the same:
    libcusolver.so.11 belongs to CUDA 11 as well as to CUDA 12, and the two cannot be mixed.
    """
    library = culprit(resolution)
    paths = [other.path for other in resolution.other_copies if other.usable]
    # A file that the loader skipped has the name but is not usable.
    unfit = {other.path for other in resolution.other_copies if not other.usable}
    paths += [copy.path for copy in copies if copy.soname == library and copy.path not in unfit]
    return tuple(
        path
        for path in dict.fromkeys(paths)
        if _is_named(path, library) and not _foreign(posixpath.dirname(path), framework, copies)
    )


def _is_named(path: str, library: str) -> bool:
    name = posixpath.basename(path)
    return name == library or name.startswith(f"{library}.")


def _foreign(folder: str, framework: Framework, copies: Sequence[LibraryCopy]) -> bool:
    wanted, there = cuda_major(framework), cuda_major_of_folder(folder, copies)
    return None not in (wanted, there) and wanted != there


def other_versions(library: str, copies: Sequence[LibraryCopy]) -> tuple[LibraryCopy, ...]:
    """Copies of the library under another soname, or of another CUDA release."""
    base = base_name(library)
    return tuple(copy for copy in copies if base_name(copy.soname) == base)


def cuda_major(framework: Framework) -> int | None:
    """The CUDA major release that a framework was built for, if it is known."""
    cuda = framework.build.cuda
    numbers = release_numbers(cuda.value) if isinstance(cuda, Known) else ()
    return numbers[0] if numbers else None


def cuda_major_of_folder(folder: str, copies: Sequence[LibraryCopy]) -> int | None:
    """The CUDA release whose runtime is in a folder; other libraries there belong to it."""
    for copy in copies:
        if posixpath.dirname(copy.path) == folder and base_name(copy.soname) == "cudart":
            match = re.search(r"\.so\.(\d+)", copy.soname)
            if match:
                return int(match[1])
    return None


def no_copy(machine: Snapshot, failing: Sequence[Failure]) -> tuple[str, Confidence]:
    """The text for libraries that are not on the machine, and how certain that is."""
    it = "it" if len(failing) == 1 else "them"
    if isinstance(machine.cuda, Unknown):
        unseen = f"the rest of the machine could not be searched: {machine.cuda.reason}"
        return f"the loader does not find {it} ({unseen})", "likely"
    return f"this machine has no copy of {it}", "certain"


def to_install(machine: Snapshot, framework: Framework) -> tuple[str, ...]:
    """Every library that the framework lacks, whichever cause reports it."""
    copies = copies_or_none(machine)
    return tuple(
        dict.fromkeys(
            culprit(request)
            for request, fault in faults_of(framework, copies)
            if fault in _INSTALLABLE
        )
    )


def copies_or_none(machine: Snapshot) -> tuple[LibraryCopy, ...]:
    """The known copies; none if they could not be searched."""
    return machine.cuda.value.copies if isinstance(machine.cuda, Known) else ()


def failures(
    machine: Snapshot, fault: LibraryFault
) -> Iterator[tuple[Framework, tuple[Failure, ...]] | Gap]:
    """For each CUDA build, the libraries that fail for this reason; gaps if that is unknown.

    Without a GPU only what prevents the import matters: CUDA, if the build links it, and the
    framework's own modules.
    """
    gpu = nvidia_gpu(machine)
    builds = tuple(cuda_builds(machine))
    linked = [item for item in builds if not isinstance(gpu, Absent) or links(item)]
    affected = [item for item in builds if item in linked or import_fails(machine, item)]
    if not affected:
        need(gpu)
    copies = copies_or_none(machine)
    for framework in affected:
        libraries = framework.libraries
        if isinstance(libraries, Unknown):
            yield Gap(f"the libraries that {titled(framework)} loads: {libraries.reason}")
        elif isinstance(libraries, Known):
            claimed: dict[str, list[Resolution]] = {}
            for resolution, found in faults_of(framework, copies):
                if found == fault and (framework in linked or _by_import(machine, resolution)):
                    claimed.setdefault(culprit(resolution), []).append(resolution)
            if claimed:
                yield framework, tuple(Failure(n, tuple(r)) for n, r in claimed.items())


def libraries_of(framework: Framework) -> tuple[Resolution, ...]:
    """The libraries that a framework loads, if they are known."""
    libraries = framework.libraries
    return libraries.value if isinstance(libraries, Known) else ()


def import_fails(machine: Snapshot, framework: Framework) -> bool:
    """Whether a module of the framework's own, or what it links, does not load."""
    return framework.name in _IMPORT_OWN_MODULES and any(
        resolution.required and resolution.outcome != "loads" and _by_import(machine, resolution)
        for resolution in libraries_of(framework)
    )


def _by_import(machine: Snapshot, resolution: Resolution) -> bool:
    """Whether the interpreter itself opens the file."""
    interpreter = machine.target.interpreter
    return isinstance(interpreter, Known) and resolution.requester == interpreter.value.path


def links(framework: Framework) -> bool:
    """Whether a build is linked to its CUDA libraries; others load them to look for a GPU."""
    return framework.name == "torch" or (
        framework.name == "tensorflow" and release_numbers(framework.version) < _OPENS_CUDA
    )


def effect_on(framework: Framework) -> Effect:
    """The effect on the framework if a library does not load."""
    return "broken" if links(framework) else "cpu"


def consequence(framework: Framework, failing: Sequence[Failure]) -> str:
    """What the framework does and prints if these libraries do not load."""
    name = display_name(framework.name)
    release = release_numbers(framework.version)
    if links(framework):
        return f"importing {name} fails"
    if framework.name != "tensorflow" or release < _SILENT_TENSORFLOW:
        return f"{name} continues without the GPU"
    if any(base_name(failure.library) == "cudart" for failure in failing):
        return (
            'TensorFlow prints "Could not find cuda drivers on your machine", which means '
            "libcudart and not the driver, and runs on the CPU"
        )
    return (
        'TensorFlow warns "Cannot dlopen some GPU libraries" without naming any, and runs on '
        "the CPU"
    )


def copy_at(path: str, copies: Sequence[LibraryCopy]) -> LibraryCopy | None:
    """The copy at a path, whether the path ends in its soname or its full version."""
    folder = posixpath.dirname(path)
    beside = [copy for copy in copies if posixpath.dirname(copy.path) == folder]
    exact = (copy for copy in beside if copy.path == path)
    return next(exact, next((copy for copy in beside if _is_named(path, copy.soname)), None))
