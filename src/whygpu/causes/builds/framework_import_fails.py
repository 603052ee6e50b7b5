"""The framework is installed, but raises an error before it can be used.

## Why it happens

A package that it needs is missing or has the wrong version, one of its libraries cannot be loaded,
or its installation is damaged. If whygpu knows the reason, it shows that reason as the root cause
and this finding below it.

## What it looks like

A traceback. Its last line is not always the reason: Keras and TensorFlow replace errors with
messages such as `Keras cannot be imported. Check that it is installed.` The real error is further
up, before `During handling of the above exception`.

## Fix

Fix what the first error of the chain names. If files of the framework itself are missing or
damaged, install it again.

## Fires on (machine)

```toml
[probes.torch]
ended = "exception"
stage = "import"
how = "ImportError: libtorch_cpu.so: cannot enable executable stack"
```

The files of a package are gone, and its folder is still there.

```toml
[target.interpreter]
modules = [{name = "torch", place = {absent = "torch"}}]
[probes.torch]
ended = "exception"
stage = "import"
how = "AttributeError: module 'torch' has no attribute '__version__'"
```

A folder of LD_LIBRARY_PATH holds a library that does not fit.

```toml
[environment.variables.LD_LIBRARY_PATH]
value = "/opt/old/lib:/opt/other/lib"
[probes.torch]
ended = "exception"
stage = "import"
how = "ImportError: /opt/old/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by torch)"
```

It is imported, but cannot compute on the CPU.

```toml
start = "no-gpu"
only = ["jax"]
[probes.jax]
operations = [
    {operation = "matmul", requested = "cpu:0", ran_on = {unknown = "XlaRuntimeError: INTERNAL: no reason"}, kind = "cpu", correct = {unknown = "it failed"}},
]
```

The file system of the environment is mounted with noexec.

```toml
[probes.torch]
ended = "exception"
stage = "import"
how = "ImportError: /data/venv/lib/libtorch.so: failed to map segment from shared object"
```

## Quiet on (machine)

```toml
start = "no-gpu"
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
```

## Sources

- <https://docs.python.org/3/library/exceptions.html#exception-context>
- <https://www.tensorflow.org/install/errors>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.framework_installs import again
from whygpu.causes.evidence.import_culprits import other_package
from whygpu.causes.evidence.library_search import without_library
from whygpu.causes.evidence.packages import (
    framework_name_of,
    package_named,
    required_name,
    requirement_named_like,
    requirement_of,
)
from whygpu.causes.evidence.probe_ends import (
    GPU_USERS,
    failed_on_cpu,
    first_error,
    for_refused_memory,
    imported,
    own_probes,
    quoted,
)
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.outside_text import excerpt
from whygpu.model.probe import Probe
from whygpu.model.remedy import PYTHON, DropPath, Install, Pip, a_name, a_path, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

CAUSE = cause("WG314", __name__, __doc__, severity="error", effect="broken")

_FROM_FILE = late(
    r"(?:from|module) (?:partially initialized module )?'(?P<module>[\w.]{1,100})'"
    r"[^\n]{0,120}\((?P<path>[^()\n]{1,300}\.py)\)"
)
"""Python names the file of a module that lacks a name; since 3.13 also for an attribute."""
_INSTALLED = late(r"/(?:site|dist)-packages/|/lib/python\d")
_UNUSABLE_FILE = late(
    r"(?P<path>/[^\n:'\"]{1,300}\.so[.\d]{0,20}): (?:file too short|invalid ELF header"
    r"|wrong ELF class|cannot (?:read|open|map)|undefined symbol|version [`'\"])"
)
"""The loader's complaint about a file: a broken one, or one without a symbol or a version."""
_DAMAGED_FILE = late(
    r"(?P<path>/[^\n:'\"]{1,300}\.so[.\d]{0,20}): (?:file too short|invalid ELF header|cannot read)"
)
_SAID_TO_BE_MISSING = late(
    r"pip3? install (?:-U |--upgrade )?[`'\"]?(?P<name>[A-Za-z0-9][\w.-]{1,60})"
)
"""A package that an error asks for, as `Please pip install optree`."""
_NOT_MAPPED = late(r"(?P<path>/[^\n:'\"]{1,300}\.so[.\d]{0,20}): failed to map segment")
"""On a file system that is mounted with noexec, or beyond a limit of the address space."""
_MISSING_MODULE = late(r"No module named '([\w.]+)'")
_INCOMPLETE = late(
    r"No module named '(?P<below>\w{1,100})\.|module '(?P<bare>\w{1,100})' has no attribute"
    r"|from '(?P<nowhere>[\w.]{1,100})' \(unknown location\)"
)
"""What Python says of a package whose files are gone, besides other reasons."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for framework, probe in own_probes(machine):
        if isinstance(probe, Unknown):
            yield Gap(probe.reason)
        elif isinstance(probe, Known) and probe.value.ended == "not-started":
            yield Gap(f"{titled(framework)} could not be run: {probe.value.how}")
        elif isinstance(probe, Known) and (
            failed_on_cpu(probe.value)
            or (probe.value.ended == "exception" and not _fails_on_the_gpu(machine, probe.value))
        ):
            yield _finding(machine, framework, probe.value)


def _fails_on_the_gpu(machine: Snapshot, probe: Probe) -> bool:
    """It imports, but fails when it looks for its devices: gpu-unused reports that."""
    return imported(probe) and probe.name in GPU_USERS and isinstance(nvidia_gpu(machine), Known)


def _finding(machine: Snapshot, framework: Framework, probe: Probe) -> Finding:
    operation = failed_on_cpu(probe)
    if operation is not None and isinstance(operation.ran_on, Unknown):
        error = last = operation.ran_on.reason
        what = f"is imported, but {operation.operation} on {operation.requested} fails"
    else:
        error, last = first_error(probe), probe.how
        what = f"fails at {probe.stage}" if imported(probe) else "cannot be imported"
    shown = excerpt(last)
    hidden = "" if error == last else f", which hides the first error: {excerpt(error)}"
    stale = _stale_library(machine, error)
    because = ""
    if stale is not None and isinstance(stale.action, DropPath):
        because = f"; the loader takes this file from {stale.action.name}"
    empty = _without_files(machine, error)
    if empty:
        because = f"; of {empty} there is no more than a folder: its own files are gone"
    return CAUSE.finding(
        subject=framework.name,
        message=f"{titled(framework)} {what}: {shown}{hidden}{because}",
        evidence=tuple(quoted(probe, text) for text in dict.fromkeys((excerpt(error), shown))),
        remedies=(stale,)
        if stale
        else (_renew(machine, framework, empty),)
        if empty
        else for_refused_memory(error)
        or _of_another_package(machine, framework, error)
        or (*_shadowing(machine, error), *_remedies(machine, framework, error)),
    )


def _without_files(machine: Snapshot, error: str) -> str:
    """The module that the error is about, if imports find a folder of that name and no package in
    it: an interrupted uninstallation leaves one, and Python takes it for a package."""
    named = _INCOMPLETE.search(error)
    interpreter = machine.target.interpreter
    if named is None or not isinstance(interpreter, Known):
        return ""
    if named["nowhere"]:
        return named["nowhere"]
    module = named["below"] or named["bare"]
    found = interpreter.value.modules
    places = {each.name: each.place for each in found.value} if isinstance(found, Known) else {}
    return module if isinstance(places.get(module), Absent) else ""


def _renew(machine: Snapshot, framework: Framework, module: str) -> Remedy:
    """Install what the module is from again. The files of a known release are enough."""
    text = f"Install {module} again: its files are missing."
    if module == framework.name:
        return Remedy(text, again(framework)._replace(options=("force-reinstall", "no-deps")))
    name = required_name(module)
    package = package_named(machine, name)
    if package is None:
        # Other packages than NumPy may have another name than their module.
        known = Install((name,), options=("force-reinstall",)) if name == "numpy" else None
        return Remedy(text, known)
    same = f"{name}=={package.version}"
    return Remedy(text, Install((same,), options=("force-reinstall", "no-deps")))


def _stale_library(machine: Snapshot, error: str) -> Remedy | None:
    """The loader names the file that it cannot use; a setting may have put it first."""
    found = (without_library(machine, m["path"]) for m in _UNUSABLE_FILE.finditer(error))
    return next(filter(None, found), None)


def _shadowing(machine: Snapshot, error: str) -> tuple[Remedy, ...]:
    """A file of the user that Python finds instead of a module of the framework or of Python."""
    named = _FROM_FILE.search(error)
    path = named["path"] if named else ""
    interpreter = machine.target.interpreter
    if not path or _INSTALLED.search(path):
        return ()
    if isinstance(interpreter, Known) and path.startswith(f"{interpreter.value.prefix}/"):
        return ()
    module = named["module"] if named else ""
    return (
        Remedy(
            f"Rename {path}: Python imports it instead of the module {module} that is needed. Or "
            "start the program in another folder."
        ),
    )


def _of_another_package(machine: Snapshot, framework: Framework, error: str) -> tuple[Remedy, ...]:
    """The error names a package that is installed, and not the framework's own."""
    refused = _NOT_MAPPED.search(error)
    if refused is not None:
        return (
            Remedy(
                "The file is there, but the system does not let it be loaded. If its file system "
                "has the option noexec, move the environment to another one; if ulimit -v prints "
                "a number, raise that limit.",
                shell_script("findmnt -T ", a_path(refused["path"]), "; ulimit -v"),
            ),
        )
    broken = _DAMAGED_FILE.search(error)
    damaged = other_package(machine, framework, broken["path"]) if broken else None
    if damaged is not None:
        same = f"{damaged.name}=={damaged.version}"
        return (
            Remedy(
                f"Install {damaged.name} {damaged.version} again: the file is part of it.",
                Install((same,), options=("force-reinstall", "no-deps")),
            ),
        )
    lacking = _FROM_FILE.search(error)
    package = other_package(machine, framework, lacking["path"]) if lacking else None
    if package is not None:
        return (
            Remedy(
                f"Install the newest {package.name}: {package.version} does not have that name. If "
                "it already is the newest, an older one is needed.",
                Install((package.name,), options=("upgrade",)),
            ),
            Remedy("Then check whether installed packages conflict.", Pip(("check",))),
        )
    asked = _SAID_TO_BE_MISSING.search(error)
    there = package_named(machine, required_name(asked["name"])) if asked else None
    if there is not None and framework_name_of(there.name) is None:
        module = there.name.replace("-", "_")
        return (
            Remedy(
                f"See why {there.name} {there.version}, which is installed, cannot be imported.",
                shell_script(PYTHON, " -c 'import ", a_name(module), "'"),
            ),
            Remedy("Check whether installed packages conflict.", Pip(("check",))),
        )
    return ()


def _remedies(machine: Snapshot, framework: Framework, error: str) -> tuple[Remedy, ...]:
    reinstall = Remedy(
        "Install this release again, with its requirements.",
        again(framework),
    )
    missing = _MISSING_MODULE.search(error)
    if missing is None:
        return (
            Remedy("Check whether installed packages conflict.", Pip(("check",))),
            reinstall,
        )
    module = missing[1]
    if module.partition(".")[0] == framework.name:
        files = again(framework)._replace(options=("force-reinstall", "no-deps"))
        text = f"Files of {titled(framework)} itself are missing: install this release again."
        return (Remedy(text, files),)
    required = requirement_of(machine, framework, required_name(module.partition(".")[0]))
    if required is not None and package_named(machine, required_name(required)) is None:
        text = f"Install {required_name(required)}, which {titled(framework)} requires."
        return (Remedy(text, Install((required,))), reinstall)
    similar = requirement_named_like(machine, framework, module.partition(".")[0])
    if similar is not None and package_named(machine, required_name(similar)) is None:
        text = (
            f"Install {required_name(similar)}, which {titled(framework)} requires and which by "
            f"its name contains the module {module}."
        )
        return (Remedy(text, Install((similar,))), reinstall)
    return (
        Remedy(
            f"Find the required package that contains the module {module}, and install it.",
            Pip(("check",)),
        ),
        reinstall,
    )
