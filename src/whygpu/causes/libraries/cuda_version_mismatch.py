"""CUDA is installed in another major version than the one the framework was built for.

## Why it happens

A framework's build is tied to one CUDA major release: it asks for `libcudart.so.12` by that name.
The newest toolkit, or the one another program needed, is no substitute, be it older or newer.

## What it looks like

`Could not load dynamic library 'libcudart.so.10.0'` on a machine with CUDA 11, an ImportError, or
just no GPU.

## Fix

Install the CUDA libraries of the framework's release beside the ones that are there (as wheels or
in a conda environment they disturb nothing), or take a release of the framework that was built for
the installed CUDA. A link from the old name to the new file is no fix: it loads, and then
crashes or computes wrongly, because the functions behind the names have changed.

## Fires on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudart.so.12"]
outcome = "not-found"
path = ""
chain = ["libcudart.so.12"]
detail = "libcudart.so.12: cannot open shared object file: No such file or directory"
[cuda.copies.cudart]
soname = "libcudart.so.11.0"
path = "/usr/local/cuda-11.8/lib64/libcudart.so.11.0"
version = "11.8.89"
origin = "toolkit"
```

## Quiet on (machine)

Another version beside the right one does no harm.

```toml
only = ["tensorflow"]
[cuda.copies.cudart]
soname = "libcudart.so.11.0"
path = "/usr/local/cuda-11.8/lib64/libcudart.so.11.0"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow]
libraries = {unknown = "the CUDA version of tensorflow 2.30.0 is not on record"}
```

## Sources

- <https://www.tensorflow.org/install/source#gpu>
- <https://docs.nvidia.com/deploy/cuda-compatibility/>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_builds import titled
from whygpu.causes.shared_installs import install_remedies
from whygpu.causes.shared_libraries import (
    consequence,
    copies_or_none,
    effect_on,
    failures,
    other_versions,
    to_install,
)
from whygpu.causes.shared_search import dlopen_warning, listed, requests_seen
from whygpu.model.cause import cause
from whygpu.model.derived import and_list
from whygpu.model.finding import Evidence, Finding, Gap
from whygpu.model.libraries import LibraryCopy
from whygpu.model.observed import Known
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

CAUSE = cause(
    "WG204",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        "cudnn-missing",
        "gpu-unused",
        "keras-backend-without-gpu",
        "framework-import-fails",
    ),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    copies = copies_or_none(machine)
    for item in failures(machine, "cuda-version-mismatch"):
        if isinstance(item, Gap):
            yield item
            continue
        framework, failing = item
        there = [copy for failure in failing for copy in other_versions(failure.library, copies)]
        paths = and_list(list(dict.fromkeys(copy.path for copy in there)))
        yield CAUSE.finding(
            subject=framework.name,
            effect=effect_on(framework),
            message=(
                f"{titled(framework)} needs {listed(failing)}{_release(framework)}; this machine "
                f"has another CUDA release instead ({paths}), which cannot stand in; "
                f"{consequence(framework, failing)}"
            ),
            evidence=(
                *requests_seen(failing),
                *(_seen(copy) for copy in dict.fromkeys(there)),
                *dlopen_warning(machine, framework),
            ),
            remedies=install_remedies(machine, framework, to_install(machine, framework)),
        )


def _release(framework: Framework) -> str:
    cuda = framework.build.cuda
    return f" of CUDA {cuda.value}" if isinstance(cuda, Known) else ""


def _seen(copy: LibraryCopy) -> Evidence:
    version = f", version {copy.version.value}" if isinstance(copy.version, Known) else ""
    return Evidence("machine", copy.path, f"{copy.soname}{version}")
