"""An installed package was built for another Python or another platform.

## Why it happens

pip never installs such a wheel by itself. It happens when a folder of packages is used with another
interpreter: `PYTHONPATH` names the site-packages folder of another Python, an environment was
copied from another machine, `pip install --target` or `--platform` was used for another system, or
the system's Python was upgraded below a virtual environment. The free-threaded build of a Python
(`python3.14t`) counts as another Python: it loads wheels with `cp314t` in their names only.

## What it looks like

The import fails with `No module named` a compiled part of the package
(`numpy._core._multiarray_umath`), or with `wrong ELF class` or `invalid ELF header`.

## Fix

Install the package with the interpreter that uses it, and remove folders of other interpreters from
its path.

## Fires on (machine)

```toml
probes_left_out = "--no-probe"
[target.packages.torch]
wheel_tags = ["cp310-cp310-manylinux_2_28_x86_64"]
```

```toml
probes_left_out = "--no-probe"
[target.interpreter]
wheel_tags = ["cp311", "cp311t", "py3", "linux_x86_64"]
[target.packages.torch]
wheel_tags = ["cp311-cp311-manylinux_2_28_x86_64"]
```

## Quiet on (machine)

```toml
[target.packages.torch]
wheel_tags = ["cp311-cp311-manylinux_2_28_x86_64"]
[target.packages.protobuf]
wheel_tags = ["cp39-abi3-manylinux2014_x86_64"]
```

## Cannot tell on (machine)

```toml
[target.interpreter]
unknown = "~/venv/bin/python does not start"
```

## Sources

- <https://packaging.python.org/en/latest/specifications/platform-compatibility-tags/>
- <https://numpy.org/devdocs/user/troubleshooting-importerror.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.packages import framework_name_of, off_pythonpath, requirement_of
from whygpu.causes.evidence.probe_ends import framework_probes, imported
from whygpu.model.cause import cause
from whygpu.model.derived import and_list
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Known, need
from whygpu.model.remedy import Install, UnsetVariable
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework, Interpreter, Package, active
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG305",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-import-fails", "framework-crashes", "package-shadowed"),
)

_PYTHON = late(r"(?P<kind>py|cp|pp)(?P<major>\d)(?P<minor>\d*)")
_LINUX = late(r"(?:linux|manylinux(?:\d+|_\d+_\d+)|musllinux_\d+_\d+)_(?P<machine>\w+)")
_OTHER_LIBC = {"glibc": ("musllinux",), "musl": ("manylinux",)}
_KINDS = {"cp": "cpython", "pp": "pypy"}


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    interpreter = need(machine.target.interpreter)
    libc = _libc(machine)
    misfits: dict[str, list[Package]] = {}
    for package in active(need(machine.target.packages)):
        verdicts = [_fits(tag, interpreter, libc) for tag in package.wheel_tags]
        if not verdicts or True in verdicts or not _affected(machine, [package]):
            continue
        if None in verdicts:
            tags = ", ".join(package.wheel_tags)
            yield Gap(f"whether {package.name} {package.version} matches: its tags are {tags}")
        else:
            misfits.setdefault(package.location, []).append(package)
    for location, packages in misfits.items():
        yield _finding(machine, interpreter, location, packages)


def _affected(machine: Snapshot, packages: list[Package]) -> list[Framework]:
    """The frameworks that these packages belong to or that require them, and that do not import."""
    return [
        framework
        for framework, probe in framework_probes(machine)
        if not (isinstance(probe, Known) and imported(probe.value))
        and any(
            framework_name_of(package.name) == framework.name
            or requirement_of(machine, framework, package.name)
            for package in packages
        )
    ]


def _finding(
    machine: Snapshot, interpreter: Interpreter, location: str, packages: list[Package]
) -> Finding:
    affected = _affected(machine, packages)
    here = f"{interpreter.implementation} {interpreter.build}"
    built = [f"{package.name} {package.version} ({package.wheel_tags[0]})" for package in packages]
    again = tuple(f"{package.name}=={package.version}" for package in packages)
    return CAUSE.finding(
        subject=affected[0].name if len(affected) == 1 else MACHINE,
        message=(
            f"packages in {location} were built for another Python or platform than the target, "
            f"{here} on {_platform(interpreter) or 'an unknown platform'}"
            f"{' with musl' if _libc(machine) == 'musl' else ''}: {', '.join(built)}; "
            f"{and_list([titled(framework) for framework in affected])} cannot load them"
        ),
        evidence=(
            *(
                seen(machine.target.packages, f"{package.name}: {', '.join(package.wheel_tags)}")
                for package in packages
            ),
            seen(machine.target.interpreter, f"{here}: {', '.join(interpreter.wheel_tags)}"),
        ),
        remedies=_remedies(machine, location, again),
    )


def _remedies(machine: Snapshot, location: str, again: tuple[str, ...]) -> tuple[Remedy, ...]:
    drop = off_pythonpath(machine, location)
    if drop is not None:
        return (Remedy(f"Remove {location} from PYTHONPATH.", drop),)
    if _libc(machine) == "musl":
        # No framework has wheels for musl, with or without a GPU.
        return (
            Remedy(
                "Use a distribution with glibc, such as Debian or Ubuntu, or a container image of "
                "one: Alpine Linux has musl, for which the frameworks have no wheels."
            ),
        )
    return (
        Remedy(
            f"If {location} belongs to another interpreter, remove it from the path.",
            UnsetVariable(("PYTHONPATH",)),
        ),
        Remedy(
            "Otherwise install them again with the interpreter that uses them.",
            Install(again, options=("force-reinstall",)),
        ),
    )


def _libc(machine: Snapshot) -> str:
    """Empty if it is unknown, or this is no Linux."""
    libc = machine.system.libc
    return libc.value.name if isinstance(libc, Known) else ""


def _fits(tag: str, interpreter: Interpreter, libc: str) -> bool | None:
    """Whether a wheel's tag matches the interpreter; None if the tag cannot be judged."""
    python, _, rest = tag.partition("-")
    abi, _, platform = rest.partition("-")
    fits = [_python_fits(part, abi, interpreter) for part in python.split(".")]
    answers = (
        True if True in fits else None if None in fits else False,
        _platform_fits(platform, interpreter)
        and not platform.startswith(_OTHER_LIBC.get(libc, ())),
    )
    return False if False in answers else None if None in answers else True


def _python_fits(python: str, abi: str, interpreter: Interpreter) -> bool | None:
    match = _PYTHON.fullmatch(python)
    if match is None:
        return None
    here = release_numbers(interpreter.version)[:2]
    wanted = (int(match["major"]), int(match["minor"] or 0))
    if match["kind"] == "py":
        return here[:1] == wanted[:1] and wanted <= here
    if _KINDS[match["kind"]] != interpreter.implementation:
        return False
    if abi == "abi3" and interpreter.free_threaded:
        return False
    if abi in ("abi3", "none"):
        return here[:1] == wanted[:1] and wanted <= here
    return wanted == here and abi.endswith("t") == interpreter.free_threaded


def _platform_fits(platform: str, interpreter: Interpreter) -> bool | None:
    here = _platform(interpreter)
    if platform == "any":
        return True
    if here is None:
        return None
    wanted, found = _LINUX.fullmatch(platform), _LINUX.fullmatch(here)
    if wanted is None or found is None:
        return wanted is None and found is None and platform.split("_")[0] == here.split("_")[0]
    return wanted["machine"] == found["machine"]


def _pieces(interpreter: Interpreter) -> list[str]:
    return [piece for tag in interpreter.wheel_tags for piece in tag.split("-")]


def _platform(interpreter: Interpreter) -> str | None:
    prefixes = ("linux_", "macosx_", "win")
    return next((piece for piece in _pieces(interpreter) if piece.startswith(prefixes)), None)
