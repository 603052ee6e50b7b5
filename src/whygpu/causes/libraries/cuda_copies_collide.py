"""Two frameworks in this environment load different copies of the same library.

## Why it happens

A process can hold only one library of each name. When a program imports two frameworks, the first
one loads its copy of `libcudnn.so.9`. The second one then uses that copy as well, and not the copy
that it was built and tested with. Programs that import only one framework are not affected.

## What it looks like

If a program imports TensorFlow first and PyTorch second, and each has its own cuDNN, the first
convolution in PyTorch ends the process with SIGFPE and no message. `torch.backends.cudnn.version()`
then returns the version of TensorFlow's copy. Other pairs fail with
`CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH` or `undefined symbol`.

## Fix

Give each framework its own environment and process, or install releases of both frameworks that
share one copy.

## Fires on (machine)

```toml
only = ["tensorflow", "torch"]
[target.frameworks.torch.libraries."libcudnn.so.9"]
path = "/usr/lib/python3/dist-packages/nvidia/cudnn/lib/libcudnn.so.9"
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
path = "/usr/lib/python3/dist-packages/nvidia/cudnn/lib/libcudnn.so.9"
version = "9.19.0"
origin = "wheel"
owner = "nvidia-cudnn-cu13 9.19.0.56"
```

## Quiet on (machine)

Both frameworks load the same copy.

```toml
only = ["tensorflow", "torch"]
[target.frameworks.torch.libraries."libcudnn.so.9"]
path = "~/venv/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9"
```

## Cannot tell on (machine)

```toml
only = ["tensorflow", "torch"]
[target.frameworks.torch.libraries."libcudnn.so.9"]
path = "/usr/lib/python3/dist-packages/nvidia/cudnn/lib/libcudnn.so.9"
```

## Fires on (setup)

```
==> requirements.txt <==
nvidia-cudnn-cu11==8.9.6.50
nvidia-cudnn-cu12==9.1.0.70
torch==2.4.0
```

## Quiet on (setup)

```
==> requirements.txt <==
nvidia-cudnn-cu12==9.1.0.70
nvidia-cublas-cu12==12.1.3.1
torch==2.4.0
```

## Sources

- <https://docs.nvidia.com/deeplearning/cudnn/backend/latest/api/overview.html>
- <https://man7.org/linux/man-pages/man3/dlopen.3.html>
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from whygpu.causes.evidence.framework_builds import cuda_builds, titled
from whygpu.causes.evidence.library_faults import copy_at, is_driver_library, libraries_of
from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.derived import and_list, display_name, nvidia_gpu
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy
from whygpu.model.libraries import LibraryCopy
from whygpu.model.observed import Known, Unknown, need
from whygpu.model.remedy import PYTHON, command_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.versions import release_numbers

CAUSE = cause("WG209", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    frameworks = tuple(cuda_builds(machine))
    if len(frameworks) < 2:
        return
    for framework in frameworks:
        if isinstance(framework.libraries, Unknown):
            reason = framework.libraries.reason
            yield Gap(f"the libraries that {titled(framework)} loads: {reason}")
    copies = need(machine.cuda).copies
    for one, two in combinations(frameworks, 2):
        yield from _compare(one, two, copies)


def _compare(
    one: Framework, two: Framework, copies: Sequence[LibraryCopy]
) -> Iterator[Finding | Gap]:
    """Yield at most one finding for a pair of frameworks, however many libraries differ."""
    theirs = _loaded(two)
    differing = [
        (library, path, theirs[library])
        for library, path in _loaded(one).items()
        if theirs.get(library, path) != path
    ]
    clashes = []
    for library, *paths in differing:
        versions = [_version(path, copies) for path in paths]
        if None in versions:
            unseen = next(path for path, v in zip(paths, versions, strict=True) if v is None)
            yield Gap(
                f"whether the copies of {library} that {display_name(one.name)} and "
                f"{display_name(two.name)} load differ: the version of {unseen} is unknown"
            )
        elif versions[0] != versions[1]:
            clashes.append((library, paths, versions))
    if clashes:
        names = and_list([library for library, _, _ in clashes])
        library, paths, versions = clashes[0]
        yield CAUSE.finding(
            subject=MACHINE,
            message=(
                f"{titled(one)} and {titled(two)} load different copies of {names}. A program "
                f"that imports both uses the copy of the framework it imports first: for {library} "
                f"that is {versions[0]} ({paths[0]}) or {versions[1]} ({paths[1]})"
            ),
            evidence=tuple(
                Evidence("machine", path, f"{library} {version}, for {display_name(owner.name)}")
                for library, paths, versions in clashes
                for owner, path, version in zip((one, two), paths, versions, strict=True)
            ),
            remedies=(
                Remedy(
                    f"Use {display_name(one.name)} and {display_name(two.name)} in separate "
                    "processes, preferably each in its own environment.",
                    command_line(PYTHON, "-m venv another-env"),
                ),
                Remedy("Or install releases of both that require the same CUDA and cuDNN wheels."),
            ),
            confidence="likely"
            if any("cudnn" in library for library, _, _ in clashes)
            else "possible",
        )


def _loaded(framework: Framework) -> dict[str, str]:
    """Map each library name to the file that the loader finds, without the driver's libraries."""
    return {
        request.library.rpartition("/")[2]: request.path
        for request in libraries_of(framework)
        if request.outcome == "loads" and request.path and not is_driver_library(request.library)
    }


def _version(path: str, copies: Sequence[LibraryCopy]) -> str | None:
    """The first three numbers; a wheel adds a build number, which the library does not report."""
    copy = copy_at(path, copies)
    if copy is None or not isinstance(copy.version, Known):
        return None
    return ".".join(map(str, release_numbers(copy.version.value)[:3]))


@CAUSE.on_setup
def detect_in_setup(setup: Setup) -> Iterator[SetupFinding]:
    for verdict in setup.verdicts:
        if verdict.kind == "mixed-cuda":
            name = verdict.requirement.name
            yield CAUSE.in_setup(
                verdict.requirement.place,
                subject=MACHINE,
                message=f"{name} {verdict.reason}",
                fix=verdict.advice,
                rests_on=("packages", "arguments"),
            )
