"""The cuDNN that is there is of another major release, or older than the framework needs.

## Why it happens

A build asks for one major release of cuDNN by name (`libcudnn.so.9`), and needs at least the minor
release it was built with. An upgraded framework beside an older system-wide cuDNN, or a cuDNN
pinned for another framework, breaks one or the other.

## What it looks like

With another major release the library is not found at all. With an older minor release the GPU is
listed, and the first convolution fails: `Loaded runtime CuDNN library: 8.1.0 but source was
compiled with: 8.6.0. CuDNN library needs to have matching major version and equal or higher minor
version`, or `DNN library is not found`.

## Fix

Install the cuDNN of the framework's release, and take the older copy off LD_LIBRARY_PATH.

## Fires on (machine)

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
outcome = "not-found"
path = ""
chain = ["libcudnn.so.9"]
detail = "libcudnn.so.9: cannot open shared object file: No such file or directory"
[cuda.copies.cudnn]
soname = "libcudnn.so.8"
path = "/usr/lib/x86_64-linux-gnu/libcudnn.so.8"
version = "8.9.7"
origin = "system"
owner = ""
```

The right major release, and too old a minor one:

```toml
only = ["tensorflow"]
[target.frameworks.tensorflow.libraries."libcudnn.so.9"]
path = "/opt/cudnn/lib/libcudnn.so.9"
[cuda.copies.cudnn]
path = "/opt/cudnn/lib/libcudnn.so.9"
version = "9.1.0"
origin = "ld-library-path"
owner = ""
```

## Quiet on (machine)

A newer minor release is fine.

```toml
only = ["tensorflow"]
[cuda.copies.cudnn]
version = "9.27.0"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[cuda.copies.cudnn]
version = {unknown = "libcudnn.so.9: permission denied"}
```

## Sources

- <https://www.tensorflow.org/install/source#gpu>
- <https://docs.nvidia.com/deeplearning/cudnn/backend/latest/developer/forward-compatibility.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_builds import cuda_builds, titled
from whygpu.causes.shared_installs import install_remedies
from whygpu.causes.shared_libraries import (
    consequence,
    copies_or_none,
    copy_at,
    effect_on,
    failures,
    is_cudnn,
    libraries_of,
    other_versions,
    to_install,
)
from whygpu.causes.shared_search import (
    dlopen_warning,
    found_through,
    how_found,
    listed,
    requests_seen,
    search_without,
)
from whygpu.model.cause import cause
from whygpu.model.derived import and_list
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.libraries import LibraryCopy, Resolution
from whygpu.model.observed import Known, Unknown
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.cudnn_floors import cudnn_floor
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG205",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        "cudnn-copy-differs",
        "gpu-unused",
        "keras-backend-without-gpu",
        "framework-import-fails",
    ),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    copies = copies_or_none(machine)
    for item in failures(machine, "cudnn-version-mismatch"):
        if isinstance(item, Gap):
            yield item
            continue
        framework, failing = item
        there = [copy for failure in failing for copy in other_versions(failure.library, copies)]
        found = and_list([f"{copy.soname} in {copy.path}" for copy in dict.fromkeys(there)])
        yield CAUSE.finding(
            subject=framework.name,
            effect=effect_on(framework),
            message=(
                f"{titled(framework)} needs {listed(failing)}; this machine has another major "
                f"release of cuDNN instead ({found}); {consequence(framework, failing)}"
            ),
            evidence=(*requests_seen(failing), *dlopen_warning(machine, framework)),
            remedies=install_remedies(machine, framework, to_install(machine, framework)),
        )
    for framework in cuda_builds(machine):
        for request in libraries_of(framework):
            if is_cudnn(request.library) and request.outcome == "loads" and request.path:
                yield from _older(machine, framework, request, copy_at(request.path, copies))


def _older(
    machine: Snapshot, framework: Framework, request: Resolution, copy: LibraryCopy | None
) -> Iterator[Finding | Gap]:
    """The copy that loads, judged by its minor release; silent where no floor is on record."""
    floor = _floor(framework)
    if floor is None or copy is None:
        return
    if not isinstance(copy.version, Known):
        reason = copy.version.reason if isinstance(copy.version, Unknown) else copy.version.source
        yield Gap(f"whether {copy.path} is new enough for {titled(framework)}: {reason}")
        return
    loaded, wanted = release_numbers(copy.version.value)[:2], release_numbers(floor)[:2]
    if loaded[:1] == wanted[:1] and loaded < wanted:
        folder = found_through(request)
        yield CAUSE.finding(
            subject=framework.name,
            effect=effect_on(framework),
            message=(
                f"{titled(framework)} needs cuDNN {floor} or newer of the same major release; the "
                f"loader gives it {copy.version.value} from {copy.path}"
                + (f", found through {how_found(folder)}" if folder is not None else "")
                + f"; {_outcome(framework)}"
            ),
            evidence=(
                Evidence("machine", copy.path, f"cuDNN {copy.version.value}"),
                Evidence("machine", request.requester, f"asks for {request.library}"),
            ),
            remedies=_newer_remedies(machine, framework, request),
            confidence="likely",
        )


def _outcome(framework: Framework) -> str:
    if framework.name == "jax":
        return "JAX refuses the GPU then"
    return "work that uses cuDNN, convolutions first, fails"


def _floor(framework: Framework) -> str | None:
    """The cuDNN a build needs, to its minor number where that is known."""
    cudnn = framework.build.cudnn
    if isinstance(cudnn, Known) and len(release_numbers(cudnn.value)) > 1:
        return cudnn.value
    return cudnn_floor(framework.version) if framework.name == "tensorflow" else None


def _newer_remedies(
    machine: Snapshot, framework: Framework, request: Resolution
) -> tuple[Remedy, ...]:
    folder = (request.path or "").rpartition("/")[0]
    command = search_without(machine, folder)
    first = (
        (Remedy("Take the folder of the older copy off LD_LIBRARY_PATH.", command),)
        if command is not None
        else ()
    )
    return (*first, *install_remedies(machine, framework, [request.library]))
