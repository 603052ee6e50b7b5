"""cuDNN is taken from another copy, of another version, than the one installed for the framework.

## Why it happens

LD_LIBRARY_PATH comes before the RUNPATH of TensorFlow's libraries, and the loader's cache serves
whoever has no path of their own. A system-wide cuDNN then stands in for the one that was installed
as a wheel beside the framework, unnoticed as long as both have the same major release.

## What it looks like

Nothing, at first: `Loaded cuDNN version 91400` in the log, where 9.27 is installed. Later: results
or speeds that differ between two machines with the same packages, `CUDNN_STATUS_NOT_SUPPORTED`,
or crashes, when parts of both copies end up in one process.

## Fix

Let the framework have its own copy: take the other one's folder off LD_LIBRARY_PATH.

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

A second copy that is not used, and a copy of the same version, do no harm.

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
    meant = next((c for c in copies if c.origin == "wheel" and c.soname == request.library), None)
    if meant is None or request.path is None or (used is not None and used.origin == "wheel"):
        return
    if used is None:
        yield Gap(f"the version of {request.path}, which {titled(framework)} loads: not seen")
        return
    for copy in (used, meant):
        if not isinstance(copy.version, Known):
            yield Gap(f"the version of {copy.path}: {_reason(copy.version)}")
            return
    assert isinstance(used.version, Known)
    assert isinstance(meant.version, Known)
    if _release(used.version.value) == _release(meant.version.value):
        return
    folder = found_through(request)
    yield CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} loads cuDNN {used.version.value} from {used.path}"
            + (f", found through {how_found(folder)}" if folder is not None else "")
            + f", and not the {meant.version.value} that {meant.owner or 'a wheel'} installed "
            f"beside it in {posixpath.dirname(meant.path)}"
        ),
        evidence=(
            Evidence("machine", used.path, f"cuDNN {used.version.value}, the copy that is loaded"),
            Evidence("machine", meant.path, f"cuDNN {meant.version.value}, not loaded"),
        ),
        remedies=(_remedy(machine, used, meant),),
    )


def _release(version: str) -> tuple[int, ...]:
    """A wheel's version has a fourth number, its build, which the library does not tell."""
    return release_numbers(version)[:3]


def _reason(version: Absent | Unknown) -> str:
    return version.reason if isinstance(version, Unknown) else f"none in {version.source}"


def _remedy(machine: Snapshot, used: LibraryCopy, meant: LibraryCopy) -> Remedy:
    action = search_without(machine, posixpath.dirname(used.path))
    if action is not None:
        return Remedy("Take the other copy's folder off LD_LIBRARY_PATH.", action)
    return Remedy(
        "Have the loader search the wheel's folder first.",
        search_first([posixpath.dirname(meant.path)]),
    )
