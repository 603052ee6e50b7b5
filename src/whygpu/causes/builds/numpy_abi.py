"""The framework's binaries cannot work with the installed NumPy.

## Why it happens

Compiled code is built for one binary interface of NumPy. NumPy 2 changed that interface: a
framework built for NumPy 1 cannot use it, and one built for a newer NumPy cannot use an older one.
Usually this starts when `pip install` of another package upgrades NumPy.

## What it looks like

`A module that was compiled using NumPy 1.x cannot be run in NumPy 2.x`, `numpy.core.umath failed to
import`, `numpy.dtype size changed, may indicate binary incompatibility`, or a name that NumPy 2 no
longer has: `np.complex_ was removed in the NumPy 2.0 release`. PyTorch still works, but cannot
exchange tensors with NumPy.

## Fix

Install a NumPy version in the range that the framework's metadata give, or a newer framework.

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

The framework is imported, but reads NumPy's data wrongly.

```toml
start = "no-gpu"
only = ["jax"]
[probes.jax]
operations = [
    {operation = "matmul", requested = "cpu:0", ran_on = {unknown = "XlaRuntimeError: INVALID_ARGUMENT: Unknown NumPy dtype dtype('float32') char f kind f itemsize 0"}, kind = "cpu", correct = {unknown = "it failed"}},
]
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

## Fires on (log)

```
A module that was compiled using NumPy 1.x cannot be run in
NumPy 2.0.1 as it may crash. To support both 1.x and 2.x
versions of NumPy, modules must be compiled with NumPy 2.0.
ImportError: numpy.core.umath failed to import
```

```
RuntimeError: module compiled against API version 0xe but this version of numpy is 0xd
ImportError: numpy.core.multiarray failed to import
```

```
ValueError: numpy.ndarray size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject
```

```
  File "/usr/lib/python3.9/site-packages/tensorflow/python/framework/dtypes.py", line 513, in <module>
    np.object,
AttributeError: module 'numpy' has no attribute 'object'.
```

A library uses a name that NumPy no longer has:

```
  File "/opt/env/lib/python3.9/site-packages/skimage/util/dtype.py", line 27, in <module>
    np.bool: (False, True),
  File "/opt/env/lib/python3.9/site-packages/numpy/__init__.py", line 305, in __getattr__
    raise AttributeError(__former_attrs__[attr])
AttributeError: module 'numpy' has no attribute 'bool'.
```

```
RuntimeError: module was compiled against NumPy C-API version 0x10 (NumPy 1.23) but the running NumPy has C-API version 0xe.
```

## Quiet on (log)

If the program itself uses a name that NumPy has removed, the program has to change.

```
  File "train.py", line 12, in <module>
    mask = np.zeros(10, dtype=np.bool)
AttributeError: module 'numpy' has no attribute 'bool'.
```

An old warning without consequences:

```
RuntimeWarning: numpy.dtype size changed, may indicate binary incompatibility. Expected 96, got 88
Epoch 1/3
```

## Sources

- <https://numpy.org/doc/stable/dev/depending_on_numpy.html>
- <https://numpy.org/doc/stable/numpy_2_0_migration_guide.html>
- <https://github.com/tensorflow/tensorflow/issues/16488>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.framework_installs import newer_release
from whygpu.causes.evidence.import_culprits import failed_in
from whygpu.causes.evidence.log_exceptions import INSTALLED, raised_by
from whygpu.causes.evidence.log_subjects import ended_after, framework_title, subject_of
from whygpu.causes.evidence.packages import (
    ImportFault,
    conflict_evidence,
    conflict_on,
    import_faults,
    other_version,
    package_named,
    requirement_of,
    tidy,
)
from whygpu.causes.evidence.probe_ends import framework_probes, message_in, quoted
from whygpu.model.cause import cause
from whygpu.model.finding import Confidence, Evidence, Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.observed import Known
from whygpu.model.remedy import Install, Pip
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, Package, RequirementConflict
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
_NO_HANDLE = r"Unable to convert function return value to a Python type! The signature was\s{1,8}\(\) -> handle"
"""TensorFlow registers its types, such as bfloat16, with a NumPy of another interface."""
MESSAGES = late(
    r"compiled using NumPy 1\.x cannot be run in"
    r"|numpy\.core\.\w+ failed to import"
    r"|_ARRAY_API not found"
    r"|numpy\.\w+ size changed, may indicate binary incompatibility"
    r"|module compiled against A[BP]I version \S+ but this version of numpy is"
    r"|np\.\w+`? was removed in the NumPy 2"
    r"|module 'numpy' has no attribute '(?:object|bool|int|float|complex|str|typeDict)'"
    r"|module 'numpy' has no attribute '(?:exceptions|dtypes|_core)'"
    r"|No module named 'numpy\.(?:exceptions|dtypes|_core)'"
    rf"|{_NO_HANDLE}"
    # jaxlib reads the size of a type at the place where NumPy 1 had it.
    r"|Unknown NumPy dtype [^\n]{1,60} itemsize 0"
)
WITHOUT_BRIDGE = late(r"Failed to initialize NumPy: .+")
"""PyTorch prints this if its import works but NumPy cannot be used."""

_RANGES = (
    (late(r"has no attribute '(?:object|bool|int|float|complex|str|typeDict)'"), "<1.24"),
    (
        late(r"using NumPy 1\.x|_ARRAY_API|in the NumPy 2|Expected 96 from C header|itemsize 0"),
        "<2",
    ),
    (late(r"Expected 88 from C header|numpy' has no attribute '_core|numpy\._core"), ">=2"),
    (
        late(r"numpy' has no attribute '(?:exceptions|dtypes)'|numpy\.(?:exceptions|dtypes)"),
        ">=1.25",
    ),
)
"""Message patterns, and the NumPy versions that would work."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for fault in import_faults(machine, PACKAGE, MESSAGES):
        yield fault if isinstance(fault, Gap) else _broken(machine, fault)
    for framework, probe in framework_probes(machine):
        if isinstance(probe, Known) and probe.value.ended == "finished":
            match = message_in(probe.value, WITHOUT_BRIDGE)
            if match:
                yield _cut_off(machine, framework, quoted(probe.value, match.string))


def _broken(machine: Snapshot, fault: ImportFault) -> Finding:
    framework = fault.framework
    other = _other_binary(machine, fault)
    if other is not None:
        return _broken_by(machine, fault, other)
    verb = "cannot be imported with" if fault.message else "can most likely not be imported with"
    if fault.probe is not None and fault.probe.ended == "finished":
        verb = "cannot compute with"
    line = fault.message.string if fault.message else ""
    wanted = (
        tidy(fault.conflict.requirement) if fault.conflict else _wanted(machine, framework, line)
    )
    return CAUSE.finding(
        subject=framework.name,
        message=f"{titled(framework)} {verb} {_installed(machine)}; it needs {wanted}",
        evidence=fault.evidence,
        remedies=_remedies(machine, framework, wanted),
        confidence="certain" if fault.message else "likely",
    )


def _other_binary(machine: Snapshot, fault: ImportFault) -> Package | None:
    """A package that the framework imports, and whose own binaries do not fit this NumPy.

    If NumPy is not in the framework's range, that comes first.
    """
    if fault.probe is None or fault.conflict is not None:
        return None
    package = failed_in(machine, fault.framework, fault.probe)
    return None if package is None or package.name == PACKAGE else package


def _broken_by(machine: Snapshot, fault: ImportFault, other: Package) -> Finding:
    framework = fault.framework
    named = f"{other.name} {other.version}"
    conflict = conflict_on(machine, framework, other.name)
    if conflict is None:
        because = ""
        text = f"Install a newer {other.name}, whose binaries fit {_installed(machine)}."
        remedy = Remedy(text, Install((other.name,), options=("upgrade",)))
    else:
        wanted = tidy(conflict.requirement)
        because = f", and {titled(framework)} requires {wanted}"
        remedy = other_version(machine, wanted, f"Install a release of {other.name} in that range.")
    return CAUSE.finding(
        subject=framework.name,
        message=f"{titled(framework)} cannot be imported: {named}, which it uses, does not fit "
        f"{_installed(machine)}{because}",
        evidence=fault.evidence
        + (() if conflict is None else (conflict_evidence(machine, conflict),)),
        remedies=(
            remedy,
            Remedy("Then check whether this conflicts with another package.", Pip(("check",))),
        ),
        confidence="likely" if conflict is None else "certain",
    )


def claims(machine: Snapshot, conflict: RequirementConflict) -> bool:
    """Whether a finding reports this conflict: one about NumPy, or about what it broke."""
    for fault in import_faults(machine, PACKAGE, MESSAGES):
        if isinstance(fault, ImportFault):
            other = _other_binary(machine, fault)
            met = conflict_on(machine, fault.framework, other.name) if other else fault.conflict
            if met == conflict:
                return True
    return False


def _cut_off(machine: Snapshot, framework: Framework, line: Evidence) -> Finding:
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} was built for another NumPy than {_installed(machine)}: it "
            "runs, but cannot convert between its tensors and NumPy arrays"
        ),
        evidence=(line,),
        remedies=_remedies(machine, framework, _wanted(machine, framework, line.text)),
        severity="warning",
    )


def _installed(machine: Snapshot) -> str:
    package = package_named(machine, PACKAGE)
    return f"NumPy {package.version}" if package else "the installed NumPy"


def _wanted(machine: Snapshot, framework: Framework, message: str) -> str:
    """The versions to install if the framework's metadata allow the installed one."""
    for pattern, versions in _RANGES:
        if pattern.search(message):
            return f"numpy{versions}"
    package = package_named(machine, PACKAGE)
    if package is None:
        return requirement_of(machine, framework, PACKAGE) or "numpy"
    return "numpy<2" if release_numbers(package.version) >= (2,) else f"numpy>{package.version}"


def _remedies(machine: Snapshot, framework: Framework, wanted: str) -> tuple[Remedy, ...]:
    return (
        other_version(machine, wanted, f"Install a NumPy that {titled(framework)} was built for."),
        Remedy(
            f"Or install a newer {framework.distribution} that was built for the installed NumPy.",
            newer_release(framework),
        ),
    )


BINARY = late(
    r"compiled using NumPy 1\.x cannot be run in|numpy\.core\.\w{3,40} failed to import"
    r"|_ARRAY_API not found|(?<!RuntimeWarning: )numpy\.\w{3,20} size changed, may indicate binary"
    r"|module compiled against A[BP]I version \S{1,12} but this version of numpy is"
    r"|module was compiled against NumPy C-API version"
    r"|initialization of _pywrap_\w{1,40} raised unreported exception"
    r"|expected np\.ndarray \(got numpy\.ndarray\)|Could not infer dtype of numpy\.\w|Numba needs NumPy \d"
    r"|current Numpy installation \([^\n]{1,300}\) fails to pass a sanity check"
    r"|Cannot interpret '<attribute 'dtype' of 'numpy\.generic' objects>' as a data type"
    r"|PyBfloat16_Type\.tp_base != nullptr|(?:RuntimeError:|!!!) Numpy is not available"
    rf"|Failed to initialize NumPy|{_NO_HANDLE}"
    r"|No module named 'numpy\.core\._multiarray_umath'|No module named 'numpy\._core'"
    r"|Importing the (?:numpy|multiarray numpy) C-extensions? (?:module )?failed"
    r"|[Cc]annot convert a symbolic (?:tf\.)?Tensor \([\w/.]{0,200}strided_slice:0\) to a numpy array"
)
"""The two binaries do not match, in the words of any package that reports it."""
REMOVED = late(
    r"module 'numpy(?:\.\w{2,30}){0,3}' has no attribute '\w{2,40}'|np\.\w{2,20}`? was removed in the NumPy 2"
    r"|module 'numpy' has no attribute '(?:exceptions|dtypes|_core|_no_nep50_warning)'"
    r"|No module named 'numpy\.(?:exceptions|dtypes|_core)[\w.]{0,40}'"
    r"|cannot import name '\w{2,40}' from 'numpy(?:\.\w{2,30}){0,3}'"
)
"""A name that this NumPy does not have. Inside a framework, the versions are the reason."""
NOT_YET = late(
    r"has no attribute '(?:exceptions|dtypes|_core|_no_nep50_warning)'|numpy\.(?:exceptions|dtypes)"
)
"""Names in newer releases, which programs rarely use themselves."""


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statement = log.first(BINARY)
    if statement is not None:
        # Python prints the same message for files of another Python version.
        yield _in_log(log, statement, "likely" if "C-extension" in statement.text else "certain")
        return
    for raised in log.raised:
        # If the program itself uses a removed name, the versions are not the reason.
        inside = not raised.frames or raised_by(raised, INSTALLED, below=PACKAGE)
        if REMOVED.search(raised.message) and (inside or NOT_YET.search(raised.message)):
            found = next(m for m in log.find(REMOVED) if m.line >= raised.line)
            yield _in_log(log, found, "likely")
            return


_OF_NUMPY = late(r"numpy", re.IGNORECASE)


def _ends(log: Log, statement: Match) -> tuple[int, ...]:
    """The failures that it explains. The program went on after a warning, and may fail otherwise."""
    if "Warning: " not in statement.text:
        return ended_after(log, statement.line)
    return tuple(failure.line for failure in log.failures if _OF_NUMPY.search(failure.text))


def _in_log(log: Log, statement: Match, confidence: Confidence) -> Finding:
    wanted = next((limit for pattern, limit in _RANGES if pattern.search(statement.text)), None)
    if "strided_slice" in statement.text:
        wanted = "<1.20"
    # "NumPy 1.x" is in the message itself; a release has three numbers.
    versions = [seen.version for seen in log.versions if seen.of == "numpy"]
    installed = next((version for version in versions if version.count(".") > 1), None)
    number = f" {installed}" if installed else ""
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"the installed NumPy{number} does not match the binaries of "
        f"{framework_title(log)}: {statement.text.strip()[:140]}",
        evidence=log.evidence(
            *(match.line for match in log.find(BINARY)),
            statement.line,
            *_ends(log, statement),
        ),
        remedies=(
            Remedy(
                f"Install a NumPy in the range {wanted}." if wanted else "Upgrade NumPy.",
                Install((f"numpy{wanted}",))
                if wanted
                else Install(("numpy",), options=("upgrade", "force-reinstall")),
            ),
            Remedy("Then check whether this conflicts with another package.", Pip(("check",))),
        ),
        confidence=confidence,
    )
