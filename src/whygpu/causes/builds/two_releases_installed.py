"""The metadata of two releases of one package are installed in the same folder.

## Why it happens

An upgrade or an uninstallation that was interrupted leaves the old folder `name-version.dist-info`
beside the new one. So does copying files into `site-packages`, or two tools (conda and pip) that
install the same package.

## What it looks like

Everything may work. But there is only one copy of the code, and nothing says which of the two
versions it is: `pip list` and `importlib.metadata.version` answer with the metadata that they find
first. Requirements are then checked against the wrong release, and `pip uninstall` removes files of
the other one.

## Fix

Uninstall the package until pip says that it is not installed, then install one release.

## Fires on (machine)

```toml
[[target.packages]]
name = "torch"
version = "2.8.0"
[[target.packages]]
name = "torch"
version = "2.7.1"
```

## Quiet on (machine)

A copy in another folder is not imported; see WG312.

```toml
[[target.packages]]
name = "torch"
version = "2.8.0"
[[target.packages]]
name = "torch"
version = "2.7.1"
location = "/usr/lib/python3/dist-packages"
shadowed = true
```

## Cannot tell on (machine)

```toml
[target.packages]
unknown = "site-packages: permission denied"
```

## Sources

- <https://packaging.python.org/en/latest/specifications/recording-installed-packages/>
- <https://docs.python.org/3/library/importlib.metadata.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.packages import framework_name_of
from whygpu.causes.evidence.probe_ends import own_probes
from whygpu.model.cause import cause
from whygpu.model.derived import and_list
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.observed import Known, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Package, active
from whygpu.tables.distributions import matters, provider

CAUSE = cause("WG325", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    releases: dict[tuple[str, str], list[Package]] = {}
    for package in active(need(machine.target.packages)):
        if matters(package.name):
            releases.setdefault((package.name, package.location), []).append(package)
    for (name, location), packages in releases.items():
        versions = tuple(dict.fromkeys(package.version for package in packages))
        if len(versions) > 1:
            yield _finding(machine, name, location, versions)


def _finding(machine: Snapshot, name: str, location: str, versions: tuple[str, ...]) -> Finding:
    files = _version_of_files(machine, name)
    there = (
        f"the files are those of {files}" if files else "which of them the files are is not known"
    )
    return CAUSE.finding(
        subject=framework_name_of(name) or MACHINE,
        message=f"{location} has the metadata of {name} {and_list(list(versions))}, as an interrupted "
        f"upgrade leaves them; {there}. pip believes the metadata that it finds first",
        evidence=(seen(machine.target.packages, f"{name} {', '.join(versions)}"),),
        remedies=(
            Remedy(
                f"Uninstall {name} again and again until the installer says that it is not "
                f"installed, which takes {len(versions)} times with pip. Then install the release "
                "that you need."
            ),
        ),
    )


def _version_of_files(machine: Snapshot, name: str) -> str:
    """The version that the code itself states, if that was seen; else empty."""
    row = provider(name)
    if row is None or row.module != row.framework:
        return ""
    for framework, probe in own_probes(machine):
        if framework.name == row.framework and isinstance(probe, Known):
            stated = probe.value.version
            return stated.value if isinstance(stated, Known) else ""
    return ""
