"""Python imports a copy of a package from outside the environment instead of the installed one.

## Why it happens

Python imports the first copy on its path. The folders of `PYTHONPATH` come before the environment's
own folder. For an interpreter outside a virtual environment, so does the user's folder
`~/.local/lib/python3.x/site-packages`, where `pip install --user` puts packages.

The folder of the started script, or the current folder, comes before all of them. A file
`torch.py` there, or a copy of PyTorch's source without compiled files, is imported instead of the
installed package.

## What it looks like

`pip list` of the environment shows one version, but the program uses another: an old CPU build from
the home folder instead of the GPU build, or a NumPy that no longer matches.

A copy of the source fails with `No module named 'torch._C'`, the user's own `torch.py` with
`partially initialized module 'torch' has no attribute 'cuda'`. The traceback shows the folder.

## Fix

Remove or rename the unwanted copy, or remove its folder from the path: start the program in another
folder, unset `PYTHONPATH`, or set `PYTHONNOUSERSITE=1`.

## Fires on (machine)

```toml
[target.interpreter]
user_site = "~/.local/lib/python3.11/site-packages"
[[target.packages]]
name = "torch"
version = "2.1.0"
location = "~/.local/lib/python3.11/site-packages"
[[target.packages]]
name = "torch"
version = "2.8.0"
shadowed = true
```

A file beside the program has the name of a package:

```toml
[target.interpreter]
in_current_folder = [{name = "torch", place = "~/project/torch.py"}]
```

A folder of `PYTHONPATH` has a module of that name, without metadata:

```toml
[target.interpreter]
paths = ["~/project", "/usr/lib/python3.11", "~/venv/lib/python3.11/site-packages"]
[target.frameworks.torch]
location = "~/project/torch.py"
[probes.torch]
ended = "exception"
stage = "import"
how = "AttributeError: module 'torch' has no attribute '__version__'"
```

## Quiet on (machine)

The folder of an editable installation comes after that of its metadata.

```toml
[target.interpreter]
paths = ["/usr/lib/python3.11", "~/venv/lib/python3.11/site-packages", "~/pytorch"]
[target.frameworks.torch]
location = "~/pytorch/torch"
```

An environment's own copy normally hides the system's copy.

```toml
[[target.packages]]
name = "numpy"
version = "2.1.3"
[[target.packages]]
name = "numpy"
version = "1.21.5"
location = "/usr/lib/python3/dist-packages"
shadowed = true
```

## Cannot tell on (machine)

```toml
[target.packages]
unknown = "~/.local/lib/python3.11/site-packages: permission denied"
```

## Fires on (log)

```
Traceback (most recent call last):
  File "/home/me/pytorch/torch/__init__.py", line 197, in <module>
    from torch._C import *
ModuleNotFoundError: No module named 'torch._C'
```

```
Traceback (most recent call last):
  File "train.py", line 1, in <module>
    import torch
  File "/home/me/project/torch.py", line 4, in <module>
    print(torch.cuda.is_available())
AttributeError: partially initialized module 'torch' has no attribute 'cuda' (most likely due to a circular import)
```

A folder without Python files has the name of the package:

```
ImportError: cannot import name 'nn' from 'torch' (unknown location)
```

```
ImportError: Error importing numpy: you should not try to import numpy from
        its source directory; please exit the numpy source tree, and relaunch
        your python interpreter from there.
```

## Quiet on (log)

The installed package is imported; it is damaged:

```
Traceback (most recent call last):
  File "/opt/env/lib/python3.10/site-packages/torch/__init__.py", line 197, in <module>
    from torch._C import *
ModuleNotFoundError: No module named 'torch._C'
```

The program uses a name that this release does not have:

```
Traceback (most recent call last):
  File "/home/me/project/train.py", line 4, in <module>
    tf.Session()
AttributeError: module 'tensorflow' has no attribute 'Session'
```

## Sources

- <https://docs.python.org/3/library/site.html>
- <https://docs.python.org/3/library/sys_path_init.html>
- <https://docs.python.org/3/using/cmdline.html#envvar-PYTHONNOUSERSITE>
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from whygpu.causes.evidence.log_shadowed import Shadow, shadow_in
from whygpu.causes.evidence.log_subjects import ended_after
from whygpu.causes.evidence.packages import framework_name_of, off_pythonpath, package_named
from whygpu.causes.evidence.probe_ends import framework_probes, imported
from whygpu.model.cause import cause
from whygpu.model.derived import DISPLAY_NAMES
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.log import Log
from whygpu.model.observed import Known, Observed, need
from whygpu.model.probe import Probe
from whygpu.model.remedy import (
    PYTHON,
    Install,
    SetVariable,
    UnsetVariable,
    a_name,
    shell_script,
)
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import FoundModule, Framework, Interpreter, Package
from whygpu.tables.distributions import matters, provider

CAUSE = cause(
    "WG312",
    __name__,
    __doc__,
    severity="warning",
    effect="none",
    explains=("session-api-removed-in-tf2", "framework-import-fails", "framework-crashes"),
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    interpreter = need(machine.target.interpreter)
    first: dict[str, Package] = {}
    shadows: dict[str, list[tuple[Package, Package]]] = {}
    for package in need(machine.target.packages):
        if not matters(package.name):
            continue
        winner = first.setdefault(_module(package), package)
        if winner.location != package.location and _shadows(interpreter, winner, package):
            shadows.setdefault(winner.location, []).append((winner, package))
    for location, pairs in shadows.items():
        yield _finding(machine, interpreter, location, pairs)
    beside = interpreter.in_current_folder
    # Where nobody looked, the packages can be judged all the same.
    for module in beside.value if isinstance(beside, Known) else ():
        yield _beside(module)
    for framework, probe in framework_probes(machine):
        yield from _before_installed(machine, interpreter, framework, probe)


def _before_installed(
    machine: Snapshot, interpreter: Interpreter, framework: Framework, probe: Observed[Probe]
) -> Iterator[Finding]:
    """A copy without metadata that comes first on the path.

    An editable installation has metadata too, and its folder comes after that of the metadata.
    """
    package = package_named(machine, framework.distribution)
    folder, name = posixpath.split(framework.location)
    paths = interpreter.paths
    if (
        package is None
        or name.partition(".")[0] != framework.name
        or not {folder, package.location} <= set(paths)
        or paths.index(folder) >= paths.index(package.location)
    ):
        return
    broken = isinstance(probe, Known) and not imported(probe.value)
    text = f"{framework.location} instead of {package.name} {package.version}"
    yield CAUSE.finding(
        subject=framework.name,
        message=f"{folder} comes before {package.location} on the path, so an import of "
        f"{framework.name} finds {text}",
        evidence=(seen(machine.target.interpreter, text),),
        remedies=(
            Remedy(f"Rename {framework.location}, if it was not meant to replace the package."),
            *_remedies(machine, interpreter, folder, []),
        ),
        severity="error" if broken else "warning",
        effect="broken" if broken else "none",
    )


def _beside(module: FoundModule) -> Finding:
    """A file beside the program that has the name of a package."""
    path = need(module.place)
    return CAUSE.finding(
        subject=module.name if module.name in DISPLAY_NAMES else MACHINE,
        message=(
            f"the current folder has {path}: a program in this folder imports that instead of the "
            f"installed {module.name}, which is the one that was examined"
        ),
        evidence=(seen(module.place),),
        remedies=(
            Remedy(f"Rename {path}, and delete the folder __pycache__ beside it.")
            if path.endswith(".py")
            else Remedy("Rename that folder, or keep the program in another one."),
        ),
        confidence="likely",
    )


def _module(package: Package) -> str:
    """The module that the copies provide: tensorflow and tensorflow-cpu are the same import."""
    row = provider(package.name)
    return package.name if row is None else row.module


def _shadows(interpreter: Interpreter, winner: Package, hidden: Package) -> bool:
    """The winner is in the user's folder or outside; the hidden one is in the environment."""
    in_environment = _inside(hidden.location, interpreter.prefix)
    if _in_user_site(interpreter, winner):
        return not _in_user_site(interpreter, hidden)
    return in_environment and not _inside(winner.location, interpreter.prefix)


def _in_user_site(interpreter: Interpreter, package: Package) -> bool:
    folder = interpreter.user_site
    return isinstance(folder, Known) and _inside(package.location, folder.value)


def _inside(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _finding(
    machine: Snapshot,
    interpreter: Interpreter,
    location: str,
    pairs: list[tuple[Package, Package]],
) -> Finding:
    texts = [
        f"{winner.name} {winner.version} instead of {hidden.name} {hidden.version}"
        for winner, hidden in pairs
    ]
    subjects = {framework_name_of(hidden.name) or MACHINE for _, hidden in pairs}
    return CAUSE.finding(
        subject=subjects.pop() if len(subjects) == 1 else MACHINE,
        message=(
            f"{location} comes before {pairs[0][1].location} on the path, so Python imports from "
            f"it: {', '.join(texts)}"
        ),
        evidence=tuple(seen(machine.target.packages, text) for text in texts),
        remedies=_remedies(machine, interpreter, location, [winner for winner, _ in pairs]),
    )


def _remedies(
    machine: Snapshot, interpreter: Interpreter, location: str, winners: list[Package]
) -> tuple[Remedy, ...]:
    if winners and _in_user_site(interpreter, winners[0]):
        return (
            Remedy(
                "Remove the copies in the home folder.",
                Install((), removes=tuple(dict.fromkeys(package.name for package in winners))),
            ),
            Remedy("Or remove that folder from the path.", SetVariable("PYTHONNOUSERSITE", "1")),
        )
    drop = off_pythonpath(machine, location)
    if drop is not None:
        return (Remedy(f"Remove {location} from PYTHONPATH.", drop),)
    return (
        Remedy(f"Remove {location} from the path.", UnsetVariable(("PYTHONPATH",))),
        Remedy("Or find what else adds it: a .pth file, or a script that changes sys.path."),
    )


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    shadow = shadow_in(log)
    if shadow is None:
        return
    yield CAUSE.finding(
        subject=shadow.name if shadow.name in DISPLAY_NAMES else MACHINE,
        severity="error",
        effect="broken",
        message=_what_is_imported(shadow),
        evidence=log.evidence(shadow.line, *ended_after(log, shadow.line)),
        remedies=_log_remedies(shadow),
        confidence="certain" if shadow.kind == "file" else "likely",
        ask="Which copy does Python find? The second command shows it.",
    )


def _what_is_imported(shadow: Shadow) -> str:
    where = shadow.path or "another folder"
    if shadow.kind == "file":
        return f"Python imports {where} instead of the installed package {shadow.name}"
    if shadow.kind == "empty-folder":
        return (
            f"Python finds only a folder with the name {shadow.name} that has no __init__.py: the "
            "rest of an old installation, or a folder beside the program"
        )
    return (
        f"Python imports {shadow.name} from {where} instead of the installed package; most often "
        "that is a copy of its source, which has no compiled files"
    )


def _log_remedies(shadow: Shadow) -> tuple[Remedy, ...]:
    if shadow.kind == "file":
        first = Remedy(f"Rename {shadow.path}, and delete the folder __pycache__ beside it.")
    else:
        first = Remedy(
            "Start the program in another folder, and remove the folder that contains this copy "
            "from PYTHONPATH."
        )
    return (
        first,
        Remedy(
            "Check which copy Python finds.",
            shell_script(
                PYTHON,
                " -c 'import importlib.util, sys; print(importlib.util.find_spec(sys.argv[1]))' ",
                a_name(shadow.name),
            ),
        ),
    )
