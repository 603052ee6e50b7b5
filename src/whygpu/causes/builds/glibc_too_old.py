"""The system's C or C++ library is older than the framework's binaries need.

## Why it happens

Linux binaries run with the C library they were built against and with newer ones, never with older
ones. The library is too old for a new wheel on an old distribution (CentOS 7 has glibc 2.17, Ubuntu
18.04 has 2.27), or if an older libstdc++ comes first in `LD_LIBRARY_PATH` or in a conda
environment.

## What it looks like

``version `GLIBC_2.28' not found (required by ...)``, or the same with `GLIBCXX_3.4.29` or
`CXXABI_1.3.13`. If a CUDA library needs it, which is loaded later, the framework continues without
the GPU.

## Fix

glibc cannot be replaced on a running system: use a newer distribution, a container, or an older
release of the framework. A libstdc++ that is too old can be replaced by the one from conda-forge.

## Fires on (machine)

```toml
[probes.torch]
ended = "exception"
stage = "import"
how = "ImportError: libm.so.6: version `GLIBC_2.28' not found (required by libtorch_cpu.so)"
```

```toml
probes_left_out = "--no-probe"
[system.libc]
name = "glibc"
version = "2.17"
[target.packages.torch]
wheel_tags = ["cp311-cp311-manylinux_2_28_x86_64"]
```

A folder of LD_LIBRARY_PATH has an older libstdc++.

```toml
[environment.variables.LD_LIBRARY_PATH]
value = "/opt/old/lib"
[probes.torch]
ended = "exception"
stage = "import"
how = "ImportError: /opt/old/lib/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /venv/libtorch_python.so)"
```

## Quiet on (machine)

```toml
start = "no-gpu"
[target.packages.torch]
wheel_tags = ["cp311-cp311-manylinux_2_28_x86_64"]
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
[system]
libc = {unknown = "ldd does not start"}
[target.packages.torch]
wheel_tags = ["cp311-cp311-manylinux_2_28_x86_64"]
```

## Fires on (log)

```
ImportError: /lib64/libm.so.6: version `GLIBC_2.27' not found (required by /opt/env/lib/python3.8/site-packages/tensorflow/python/../libtensorflow_framework.so.2)
```

```
ImportError: /usr/lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.30' not found (required by /opt/env/lib/python3.10/site-packages/jaxlib/xla_extension.so)
```

## Quiet on (log)

```
2024-05-01 10:00:00.100000: I tensorflow/core/platform/cpu_feature_guard.cc:210] This TensorFlow binary is optimized to use available CPU instructions
glibc 2.35
```

## Sources

- <https://peps.python.org/pep-0600/>
- <https://gcc.gnu.org/onlinedocs/libstdc++/manual/abi.html>
- <https://github.com/tensorflow/tensorflow/issues/1324>
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.framework_installs import newest_release
from whygpu.causes.evidence.library_search import without_library
from whygpu.causes.evidence.log_subjects import ended_after, framework_title, subject_of
from whygpu.causes.evidence.packages import package_named
from whygpu.causes.evidence.probe_ends import failure_message, own_probes, quoted
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import Confidence, Effect, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.remedy import UnsetVariable, command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG307",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-import-fails", "gpu-unused", "gpu-index-unchecked"),
)

MESSAGE = late(
    r"version [`'](?P<version>(?:GLIBC|GLIBCXX|CXXABI|GCC)_[\d.]+)' not found"
    r"(?: \(required by (?P<file>[^)]+)\))?"
)
_MANYLINUX = late(r"manylinux_(\d+)_(\d+)_\w+")
_LEGACY_TAGS = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    without_gpu = isinstance(nvidia_gpu(machine), Absent)
    for framework, probe in own_probes(machine):
        if isinstance(probe, Known):
            match = failure_message(probe.value, MESSAGE)
            if match:
                line = quoted(probe.value, match.string)
                yield _finding(machine, framework, _Shortage.of(match), line, "certain")
                continue
        in_library = None if without_gpu else _from_libraries(framework)
        if in_library is not None:
            shortage, line = in_library
            # Without one of its CUDA libraries a framework usually still runs, on the CPU.
            yield _finding(machine, framework, shortage, line, "certain", effect="cpu")
        elif not isinstance(probe, Known):
            yield from _from_wheel(machine, framework)


class _Shortage(NamedTuple):
    version: str
    """For example GLIBC_2.28."""
    file: str
    """The file that needs it; empty if the message does not name it."""

    @classmethod
    def of(cls, match: re.Match[str]) -> _Shortage:
        return cls(match["version"], match["file"] or "")


def _from_libraries(framework: Framework) -> tuple[_Shortage, Evidence] | None:
    if not isinstance(framework.libraries, Known):
        return None
    for resolution in framework.libraries.value:
        match = MESSAGE.search(resolution.detail)
        if resolution.outcome == "version-missing" and resolution.required and match:
            where = f"loading {resolution.library} for {resolution.requester}"
            return _Shortage.of(match), Evidence("machine", where, resolution.detail)
    return None


def _from_wheel(machine: Snapshot, framework: Framework) -> Iterator[Finding | Gap]:
    """A wheel's tag gives the glibc it was built for; some wheels also work with an older one."""
    package = package_named(machine, framework.distribution)
    floors = [_floor(tag) for tag in package.wheel_tags] if package else []
    if not floors or None in floors:
        return
    floor = min(floor for floor in floors if floor is not None)
    libc = machine.system.libc
    if isinstance(libc, Unknown):
        yield Gap(f"whether the C library is new enough for {titled(framework)}: {libc.reason}")
    elif (
        isinstance(libc, Known)
        and libc.value.name == "glibc"
        and release_numbers(libc.value.version)[:2] < floor
    ):
        wanted = f"GLIBC_{floor[0]}.{floor[1]}"
        tags = ", ".join(package.wheel_tags) if package else ""
        line = seen(machine.target.packages, f"{framework.distribution}: Tag {tags}")
        yield _finding(machine, framework, _Shortage(wanted, ""), line, "likely")


def _floor(tag: str) -> tuple[int, int] | None:
    """The oldest glibc that the wheel's tag supports; None if the tag does not name one."""
    platform = tag.rpartition("-")[2]
    match = _MANYLINUX.fullmatch(platform)
    if match:
        return int(match[1]), int(match[2])
    return _LEGACY_TAGS.get(platform.partition("_")[0])


def _finding(
    machine: Snapshot,
    framework: Framework,
    shortage: _Shortage,
    line: Evidence,
    confidence: Confidence,
    *,
    effect: Effect = "broken",
) -> Finding:
    libc = machine.system.libc
    evidence = [line]
    here = ""
    if isinstance(libc, Known):
        here = f"; this system has {libc.value.name} {libc.value.version}"
        evidence.append(seen(libc, f"{libc.value.name} {libc.value.version}"))
    of_c_plus_plus = shortage.version.startswith(("GLIBCXX", "CXXABI"))
    path = _too_old_file(line)
    library = f"libstdc++ {path}".strip() if of_c_plus_plus else "C library"
    needs = f"needs {shortage.version}" + (f" (for {shortage.file})" if shortage.file else "")
    return CAUSE.finding(
        subject=framework.name,
        message=f"the {library} is too old for {titled(framework)}, which {needs}{here}",
        evidence=tuple(evidence),
        remedies=_for_c_plus_plus(machine, line) if of_c_plus_plus else _for_c(framework),
        confidence=confidence,
        effect=effect,
    )


_TOO_OLD_FILE = late(r"(?P<path>/[^\n:'\"]{1,300}): version [`']")


def _too_old_file(line: Evidence) -> str:
    named = _TOO_OLD_FILE.search(line.text)
    return named["path"] if named else ""


def _for_c_plus_plus(machine: Snapshot, line: Evidence) -> tuple[Remedy, ...]:
    """The loader names the file; a setting may have put it before that of the system."""
    path = _too_old_file(line)
    without = without_library(machine, path) if path else None
    if without is not None:
        return (without,)
    conda = Remedy(
        "In a conda environment, install the newest libstdc++.",
        command_line("conda install -c conda-forge libstdcxx-ng"),
    )
    if path:
        return (conda, Remedy("Or use a newer distribution, which has a newer libstdc++."))
    return (
        Remedy(
            "If LD_LIBRARY_PATH contains an older libstdc++, try without it.",
            UnsetVariable(("LD_LIBRARY_PATH",)),
        ),
        conda,
    )


def _for_c(framework: Framework) -> tuple[Remedy, ...]:
    return (
        Remedy("Install the newest release that this system can run.", newest_release(framework)),
        Remedy(
            "Or use a newer distribution, on the machine or in a container (docker, apptainer)."
        ),
    )


LOG_MESSAGE = late(
    r"version [`'\u2018]?(?P<version>(?:GLIBC|GLIBCXX|CXXABI|GCC)_ ?[\d.]+\d)['\u2019]? not found"
    r"(?: \(required by (?P<file>[^)\n]{1,300})\))?"
    r"|version (?P<linked>GLIBC_[\d.]*\d) not defined in file"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statement = log.first(LOG_MESSAGE)
    if statement is None:
        return
    version = statement.groups["version"] or statement.groups["linked"] or ""
    file = (statement.groups["file"] or "").rpartition("/")[2]
    of_compiler = version.startswith(("GLIBCXX", "CXXABI", "GCC"))
    library = "libstdc++" if of_compiler else "C library"
    yield CAUSE.finding(
        subject=subject_of(log),
        effect="broken",
        message=(
            f"{file or framework_title(log)} needs {version}, which the loaded {library} does not "
            "have: it is older than the binary"
        ),
        evidence=log.evidence(
            *(match.line for match in log.find(LOG_MESSAGE)), *ended_after(log, statement.line)
        ),
        remedies=(
            Remedy(
                "Use the newer libstdc++ of the environment.",
                shell_script(
                    "conda install -c conda-forge libstdcxx-ng && "
                    'export LD_LIBRARY_PATH="$CONDA_PREFIX/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"'
                ),
            ),
        )
        if of_compiler
        else (
            Remedy("Check which C library this system has.", command_line("ldd --version")),
            Remedy("Install an older release of the framework, built on an older system."),
            Remedy(
                "Or use a newer system or a container image of one: the C library alone cannot be "
                "replaced."
            ),
        ),
    )
