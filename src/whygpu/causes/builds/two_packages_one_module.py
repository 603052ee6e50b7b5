"""Two installed packages wrote their files into the same module.

## Why it happens

For pip, `tensorflow` and `tensorflow-cpu` are different packages, and so are `onnxruntime` and
`onnxruntime-gpu`, or `cupy-cuda11x` and `cupy-cuda12x`. On disk each pair is one folder. The
package that is installed second overwrites the first. Often a library requires it, and the user
does not notice.

## What it looks like

The list of packages contains the GPU build, but the imported files are from the CPU build. Removing
one of the two deletes files that the other needs.

## Fix

Uninstall all of them, then install the one that you need.

## Fires on (machine)

```toml
[target.packages.tensorflow-cpu]
version = "2.20.0"
[target.frameworks.tensorflow.build]
kind = "cpu"
```

## Quiet on (machine)

A package that only requires the other one is not a second copy.

```toml
[target.packages.tensorflow]
requires = ["tensorflow-intel==2.20.0"]
[target.packages.tensorflow-intel]
version = "2.20.0"
```

## Cannot tell on (machine)

```toml
[target.packages]
unknown = "site-packages: permission denied"
```

## Fires on (setup)

```
==> requirements.txt <==
tensorflow==2.4.1
tensorflow-cpu==2.4.1
```

## Quiet on (setup)

From 2.1 to 2.11, both packages of one release contain the same build.

```
==> requirements.txt <==
tensorflow==2.4.1
tensorflow-gpu==2.4.1
```

```
==> requirements.txt <==
tensorflow==2.4.1
keras
```

## Sources

- <https://github.com/microsoft/onnxruntime/issues/26996>
- <https://docs.cupy.dev/en/stable/install.html>
- <https://www.tensorflow.org/install/pip>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_installs import gpu_build
from whygpu.causes.evidence.packages import required_name
from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.derived import and_list, nvidia_gpu
from whygpu.model.finding import Confidence, Finding, Gap, Remedy, Severity, seen
from whygpu.model.observed import Known, Observed, need
from whygpu.model.remedy import Action, Install
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import BuildKind, FrameworkName, Package, active
from whygpu.tables.distributions import provider
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG311",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        "cpu-only-build",
        "gpu-unused",
        "gpu-index-unchecked",
        "framework-import-fails",
        "framework-crashes",
    ),
)

_FOR_A_GPU = ("tensorflow", "onnxruntime")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    groups: dict[tuple[FrameworkName, str, str], list[Package]] = {}
    for package in active(need(machine.target.packages)):
        row = provider(package.name)
        if row is not None:
            groups.setdefault((row.framework, row.module, package.location), []).append(package)
    for (framework, module, location), packages in groups.items():
        rivals = _rivals(packages)
        if len({package.name for package in rivals}) > 1:
            yield _finding(machine, framework, f"{location}/{module}", rivals)


def _rivals(packages: list[Package]) -> list[Package]:
    """Without those that another of them requires: these share the files on purpose."""
    required = {
        name
        for package in packages
        for line in package.requires
        if (name := required_name(line)) != package.name
    }
    return [package for package in packages if package.name not in required]


def _finding(
    machine: Snapshot, framework: FrameworkName, folder: str, packages: list[Package]
) -> Finding:
    names = and_list([f"{package.name} {package.version}" for package in packages])
    severity, confidence = _weight(machine, framework, packages)
    built = _kind(machine, framework)
    now = f"; the files there are from a {built.value} build" if isinstance(built, Known) else ""
    return CAUSE.finding(
        subject=framework,
        message=f"{names} are both installed in {folder} and overwrite each other{now}",
        evidence=(seen(machine.target.packages, names),),
        remedies=(
            Remedy(
                "Remove all of them first, then install the one that you need.",
                _wanted(machine, framework, packages),
            ),
        ),
        severity=severity,
        confidence=confidence,
    )


def _wanted(machine: Snapshot, framework: FrameworkName, packages: list[Package]) -> Action | None:
    """Remove all of them, then install the GPU build for a GPU, else the framework's own name."""
    names = tuple(package.name for package in packages)
    if isinstance(nvidia_gpu(machine), Known) and framework in _FOR_A_GPU:
        newest = max((package.version for package in packages), key=release_numbers)
        return gpu_build(framework, installed=newest, removes=names)
    kept = next((package for package in packages if package.name == framework), packages[-1])
    return Install((f"{kept.name}=={kept.version.partition('+')[0]}",), removes=names)


def _weight(
    machine: Snapshot, framework: FrameworkName, packages: list[Package]
) -> tuple[Severity, Confidence]:
    """An error only if different kinds of build compete for a GPU and the wrong one is there."""
    kinds = {row.kind for package in packages if (row := provider(package.name)) is not None}
    built = _kind(machine, framework)
    if len(kinds) < 2 or not isinstance(nvidia_gpu(machine), Known):
        return "warning", "certain"
    if isinstance(built, Known):
        return ("warning" if built.value == "cuda" else "error"), "certain"
    return "error", "likely"


def _kind(machine: Snapshot, framework: FrameworkName) -> Observed[BuildKind]:
    found = machine.framework(framework)
    return found.value.build.kind if isinstance(found, Known) else found


@CAUSE.on_setup
def detect_in_setup(setup: Setup) -> Iterator[SetupFinding]:
    for verdict in setup.verdicts:
        name = verdict.requirement.name
        if verdict.kind == "two-owners" and not _is_replaced_on_purpose(setup, name):
            yield CAUSE.in_setup(
                verdict.requirement.place,
                subject=name,
                message=f"{name} {verdict.reason}; files do not show which one that is",
                fix=f"Remove {name}.",
                rests_on=("packages", "arguments"),
                # pip installs a list in an order of its own, and later steps may install again.
                confidence="possible",
                severity="info",
            )


def _is_replaced_on_purpose(setup: Setup, name: str) -> bool:
    """An image may uninstall the package, move it away or install another one over it."""
    start = name.partition("-")[0]
    return any(
        "--force-reinstall" in words
        or (
            "uninstall" in words
            and any("pip" in word for word in words)
            and any(start in word for word in words)
        )
        or (words[:1] == ("mv",) and any("packages" in word or "PYTHON" in word for word in words))
        for words in (command.words for command in setup.commands)
    )
