"""The installed NumPy is not one that the framework's binaries can work with.

## Why it happens

Compiled code is built against one binary interface of NumPy. NumPy 2 changed that interface: a
framework built for NumPy 1 cannot use it, and one built for a newer NumPy cannot use an older
one. `pip install` of some other package that wants the newest NumPy is how it usually starts.

## What it looks like

`A module that was compiled using NumPy 1.x cannot be run in NumPy 2.x`, `numpy.core.umath failed
to import`, `numpy.dtype size changed, may indicate binary incompatibility`, or a name that NumPy 2
no longer has: `np.complex_ was removed in the NumPy 2.0 release`. PyTorch survives it, but
cannot exchange tensors with NumPy.

## Fix

Install a NumPy within the range that the framework's metadata names, or a newer framework.

## Fires on (machine)

```toml
[probes.tensorflow]
ended = "exception"
stage = "import"
how = "ImportError: numpy.core.umath failed to import"
log = ["A module that was compiled using NumPy 1.x cannot be run in"]
[target.packages.numpy]
version = "2.4.6"
```

```toml
probes_left_out = "--no-probe"
[[target.conflicts]]
package = "tensorflow"
requirement = "numpy<2.0.0,>=1.23.5"
found = "2.4.6"
```

## Quiet on (machine)

```toml
[probes.tensorflow]
log = ["A module that was compiled using NumPy 1.x cannot be run in"]
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
[target.conflicts]
unknown = "site-packages: permission denied"
```

## Sources

- <https://numpy.org/doc/stable/dev/depending_on_numpy.html>
- <https://numpy.org/doc/stable/numpy_2_0_migration_guide.html>
- <https://github.com/tensorflow/tensorflow/issues/16488>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.shared_builds import titled
from whygpu.causes.shared_packages import (
    ImportFault,
    import_faults,
    package_named,
    requirement_of,
    tidy,
)
from whygpu.causes.shared_probes import framework_probes, quoted, said
from whygpu.model.cause import cause
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.observed import Known
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG309",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-import-fails", "framework-crashes"),
)

PACKAGE = "numpy"
MESSAGES = re.compile(
    r"compiled using NumPy 1\.x cannot be run in"
    r"|numpy\.core\.\w+ failed to import"
    r"|_ARRAY_API not found"
    r"|numpy\.\w+ size changed, may indicate binary incompatibility"
    r"|module compiled against A[BP]I version \S+ but this version of numpy is"
    r"|np\.\w+`? was removed in the NumPy 2"
    r"|module 'numpy' has no attribute '(?:object|bool|int|float|complex|str|typeDict)'"
    r"|module 'numpy' has no attribute '(?:exceptions|dtypes|_core)'"
    r"|No module named 'numpy\.(?:exceptions|dtypes|_core)'"
)
WITHOUT_BRIDGE = re.compile(r"Failed to initialize NumPy: .+")
"""PyTorch's word for an import that works and a NumPy that does not."""

_RANGES = (
    (re.compile(r"has no attribute '(?:object|bool|int|float|complex|str|typeDict)'"), "<1.24"),
    (re.compile(r"using NumPy 1\.x|_ARRAY_API|in the NumPy 2|Expected 96 from C header"), "<2"),
    (re.compile(r"Expected 88 from C header|numpy' has no attribute '_core|numpy\._core"), ">=2"),
    (
        re.compile(r"numpy' has no attribute '(?:exceptions|dtypes)'|numpy\.(?:exceptions|dtypes)"),
        ">=1.25",
    ),
)
"""What a message says about the NumPy that would do."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for fault in import_faults(machine, PACKAGE, MESSAGES):
        yield fault if isinstance(fault, Gap) else _broken(machine, fault)
    for framework, probe in framework_probes(machine):
        if isinstance(probe, Known) and probe.value.ended == "finished":
            match = said(probe.value, WITHOUT_BRIDGE)
            if match:
                yield _cut_off(machine, framework, quoted(probe.value, match.string))


def _broken(machine: Snapshot, fault: ImportFault) -> Finding:
    framework = fault.framework
    verb = "cannot be imported with" if fault.message else "will most likely not import with"
    line = fault.message.string if fault.message else ""
    wanted = (
        tidy(fault.conflict.requirement) if fault.conflict else _wanted(machine, framework, line)
    )
    return CAUSE.finding(
        subject=framework.name,
        message=f"{titled(framework)} {verb} {_installed(machine)}; it needs {wanted}",
        evidence=fault.evidence,
        remedies=_remedies(framework, wanted),
        confidence="certain" if fault.message else "likely",
    )


def _cut_off(machine: Snapshot, framework: Framework, line: Evidence) -> Finding:
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} was built for another NumPy than {_installed(machine)}: it "
            "runs, but its tensors and NumPy's arrays cannot be turned into each other"
        ),
        evidence=(line,),
        remedies=_remedies(framework, _wanted(machine, framework, line.text)),
        severity="warning",
    )


def _installed(machine: Snapshot) -> str:
    package = package_named(machine, PACKAGE)
    return f"NumPy {package.version}" if package else "the installed NumPy"


def _wanted(machine: Snapshot, framework: Framework, message: str) -> str:
    """The range to ask for where the framework's metadata have nothing against what is there."""
    for pattern, versions in _RANGES:
        if pattern.search(message):
            return f"numpy{versions}"
    package = package_named(machine, PACKAGE)
    if package is None:
        return requirement_of(machine, framework, PACKAGE) or "numpy"
    return "numpy<2" if release_numbers(package.version) >= (2,) else f"numpy>{package.version}"


def _remedies(framework: Framework, wanted: str) -> tuple[Remedy, ...]:
    return (
        Remedy(
            f"Install a NumPy that {titled(framework)} was built for.",
            f"python -m pip install '{wanted}'",
        ),
        Remedy(
            f"Or install a newer {framework.distribution}, built for the NumPy that is there.",
            f"python -m pip install --upgrade {framework.distribution}",
        ),
    )
