"""The framework loads another cuDNN version than the one installed for it.

## Why it happens

The loader searches LD_LIBRARY_PATH before the RUNPATH of TensorFlow's libraries, and it uses its
cache for libraries without a RUNPATH. A system-wide cuDNN can therefore be loaded instead of the
wheel that was installed for the framework. Nobody notices this as long as both have the same major
release.

## What it looks like

At first only `Loaded cuDNN version 91400` in the log, although 9.27 is installed. Later: results or
speeds that differ between two machines with the same packages, `CUDNN_STATUS_NOT_SUPPORTED`, or
crashes when parts of both copies are loaded into one process.

## Fix

Remove the folder of the other copy from LD_LIBRARY_PATH, so that the framework loads its own copy.

## Fires on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "~/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9"
version = "9.27.0"
origin = "wheel"
owner = "nvidia-cudnn-cu12 9.27.0.42"
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
version = "9.14.0"
origin = "system"
owner = ""
```

## Quiet on (machine)

A second copy that is not loaded does no harm, nor does a copy of the same version.

```toml
only = ["tensorflow"]
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "~/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9"
version = "9.27.0"
origin = "wheel"
owner = "nvidia-cudnn-cu12 9.27.0.42"
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
version = "9.14.0"
origin = "system"
owner = ""
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "~/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9"
version = "9.27.0"
origin = "wheel"
owner = "nvidia-cudnn-cu12 9.27.0.42"
[[cuda.copies]]
name = "cudnn"
soname = "libcudnn.so.9"
path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
version = {unknown = "libcudnn.so.9: permission denied"}
origin = "system"
owner = ""
```

## Sources

- <https://man7.org/linux/man-pages/man8/ld.so.8.html>
- <https://docs.nvidia.com/deeplearning/cudnn/backend/latest/developer/forward-compatibility.html>
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.framework_builds import cuda_builds, titled
from whygpu.causes.evidence.library_faults import base_name, copy_at, libraries_of
from whygpu.causes.evidence.library_search import (
    found_through,
    how_found,
    search_first,
    search_without,
)
from whygpu.causes.evidence.run_advice import REPAIRED_RUN
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.libraries import LibraryCopy, Resolution
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.versions import release_numbers

CAUSE = cause("WG208", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    copies = need(machine.cuda).copies
    for framework in cuda_builds(machine):
        if isinstance(framework.libraries, Unknown):
            yield Gap(f"the cuDNN that {titled(framework)} loads: {framework.libraries.reason}")
        for request in libraries_of(framework):
            if base_name(request.library) == "cudnn" and request.outcome == "loads":
                yield from _judge(machine, framework, request, copies)


def _judge(
    machine: Snapshot, framework: Framework, request: Resolution, copies: Sequence[LibraryCopy]
) -> Iterator[Finding | Gap]:
    used = copy_at(request.path or "", copies)
    intended = next(
        (c for c in copies if c.origin == "wheel" and c.soname == request.library), None
    )
    if intended is None or request.path is None or (used is not None and used.origin == "wheel"):
        return
    if used is None:
        yield Gap(f"the version of {request.path}, which {titled(framework)} loads: not found")
        return
    for copy in (used, intended):
        if not isinstance(copy.version, Known):
            yield Gap(f"the version of {copy.path}: {_reason(copy.version)}")
            return
    assert isinstance(used.version, Known)
    assert isinstance(intended.version, Known)
    if _release(used.version.value) == _release(intended.version.value):
        return
    folder = found_through(request)
    yield CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} loads cuDNN {used.version.value} from {used.path}"
            + (f", found through {how_found(folder)}" if folder is not None else "")
            + f", but {intended.owner or 'a wheel'} installed {intended.version.value} for it "
            f"in {posixpath.dirname(intended.path)}"
        ),
        evidence=(
            Evidence("machine", used.path, f"cuDNN {used.version.value}, loaded"),
            Evidence("machine", intended.path, f"cuDNN {intended.version.value}, not loaded"),
        ),
        remedies=(REPAIRED_RUN, _remedy(machine, used, intended)),
    )


def _release(version: str) -> tuple[int, ...]:
    """The first three numbers; a wheel adds a build number, which the library does not report."""
    return release_numbers(version)[:3]


def _reason(version: Absent | Unknown) -> str:
    return version.reason if isinstance(version, Unknown) else f"none in {version.source}"


def _remedy(machine: Snapshot, used: LibraryCopy, intended: LibraryCopy) -> Remedy:
    action = search_without(machine, posixpath.dirname(used.path))
    if action is not None:
        return Remedy("Remove the folder of the other copy from LD_LIBRARY_PATH.", action)
    return Remedy(
        "Make the loader search the wheel's folder first.",
        search_first([posixpath.dirname(intended.path)]),
    )
