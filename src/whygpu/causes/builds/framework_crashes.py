"""The framework's process crashes, without a Python error, at import or during a computation.

## Why it happens

Native code aborts or accesses memory that it must not use. Reasons are libraries of different
releases in one process, a setting such as `XLA_FLAGS` with a value it does not accept, a damaged
installation, faulty hardware, or a bug in the framework. An illegal instruction has its own causes,
avx-missing-sigill and listed-instruction-traps; it is reported here if neither explains it.

## What it looks like

`Segmentation fault`, `Aborted`, `Floating point exception`, or an exit status without a traceback.
The last lines before it, if there are any, name the check that failed.

## Fix

Start with the last native log line. If there is none, look for mixed libraries: unset
`LD_LIBRARY_PATH` and `LD_PRELOAD`, and install the framework into a fresh environment.

## Fires on (machine)

```toml
[probes.torch]
ended = "signal"
how = "SIGSEGV"
stage = "convolution cuda:0"
```

An illegal instruction on a processor whose listed instructions work.

```toml
[probes.torch]
ended = "signal"
how = "SIGILL"
stage = "import"
```

## Quiet on (machine)

If the processor lacks an instruction, avx-missing-sigill reports it.

```toml
[system.cpu]
instruction_sets = ["sse4_2"]
[probes.torch]
ended = "signal"
how = "SIGILL"
stage = "import"
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
```

## Sources

- <https://docs.python.org/3/library/faulthandler.html>
- <https://man7.org/linux/man-pages/man7/signal.7.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.framework_installs import again, same_release
from whygpu.causes.evidence.illegal_instructions import accounted_for, looked_at
from whygpu.causes.evidence.import_culprits import crashed_in, other_package
from whygpu.causes.evidence.probe_ends import for_refused_memory, imported, own_probes, quoted
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, stopped_from_outside
from whygpu.model.finding import Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Known, Unknown
from whygpu.model.outside_text import excerpt
from whygpu.model.probe import Probe
from whygpu.model.remedy import (
    PYTHON,
    Install,
    SetVariable,
    UnsetVariable,
    a_name,
    a_requirement,
    shell_script,
)
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

CAUSE = cause("WG315", __name__, __doc__, severity="error", effect="broken")

FATAL = late(
    r"^F\d{4} .+|: F .+\.cc:\d+\] .+|Check failed: .+|terminate called .+|libprotobuf FATAL .+"
    r"|^\*\*\* .+ \*\*\*"
)
"""Lines in which native code gives the reason for its abort."""

_LIBRARY_VARIABLES = ("LD_PRELOAD", "LD_LIBRARY_PATH", "XLA_FLAGS", "TF_XLA_FLAGS")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for framework, probe in own_probes(machine):
        if isinstance(probe, Unknown):
            yield Gap(probe.reason)
        elif isinstance(probe, Known) and stopped_from_outside(probe.value):
            yield Gap(f"{titled(framework)} was ended by another process: {probe.value.how}")
        elif isinstance(probe, Known) and _crashed(machine, framework, probe.value):
            yield _finding(machine, framework, probe.value)


def _crashed(machine: Snapshot, framework: Framework, probe: Probe) -> bool:
    if probe.illegal_instruction:
        return not accounted_for(machine, framework)
    return probe.ended in ("exit", "signal")


def _finding(machine: Snapshot, framework: Framework, probe: Probe) -> Finding:
    words = next((line for line in reversed(probe.log) if FATAL.search(line)), None)
    how = f"is ended by {probe.how}" if probe.ended == "signal" else f"ends with {probe.how}"
    why = f": {excerpt(words.strip())}" if words else _silence(machine, probe)
    place = crashed_in(probe)
    innermost = tuple(line for line in probe.log if place and f'"{place}"' in line)[:1]
    last = (innermost or probe.log[-1:]) if words is None else (words,)
    return CAUSE.finding(
        subject=framework.name,
        message=f"{titled(framework)} {how} (at: {probe.stage}){why}",
        evidence=(
            quoted(probe, f"ended by {probe.how}"),
            *(quoted(probe, line) for line in last),
        ),
        remedies=_remedies(machine, framework, probe),
    )


def _silence(machine: Snapshot, probe: Probe) -> str:
    if probe.illegal_instruction:
        return f", an illegal instruction; it is unknown which one: {looked_at(machine.system.cpu)}"
    return "; it prints no message"


def _remedies(machine: Snapshot, framework: Framework, probe: Probe) -> tuple[Remedy, ...]:
    if probe.how == "SIGKILL":
        return (
            Remedy(
                "Check whether the kernel ended it because memory ran out, and give it more.",
                shell_script("dmesg | grep -i 'out of memory'"),
            ),
        )
    remedies = [
        *_for_illegal_instruction(probe),
        *_for_bus_error(machine, framework, probe),
        *for_refused_memory("\n".join(probe.log)),
    ]
    remedies += [
        Remedy(f"{name} is set; try without it.", UnsetVariable((name,)))
        for name in _LIBRARY_VARIABLES
        if isinstance(machine.environment.get(name), Known)
    ]
    module = "tf_keras" if framework.distribution.startswith("tf-keras") else framework.name
    remedies.append(
        Remedy(
            f"Find the line of {display_name(framework.name)} at which it crashes.",
            shell_script(PYTHON, " -X faulthandler -c 'import ", a_name(module), "'"),
        )
    )
    remedies.append(
        Remedy(
            "Install the same release into a fresh environment and compare.",
            shell_script(
                PYTHON,
                " -m venv fresh && fresh/bin/python -m pip install ",
                a_requirement(same_release(framework)),
            ),
        )
    )
    return tuple(remedies)


def _for_bus_error(machine: Snapshot, framework: Framework, probe: Probe) -> tuple[Remedy, ...]:
    """At an import, a file that is mapped is shorter than its tables say, or cannot be read."""
    path = crashed_in(probe)
    if probe.how != "SIGBUS" or imported(probe) or not path:
        return ()
    other = other_package(machine, framework, path)
    if other is None and not path.startswith(f"{framework.location}/"):
        return ()
    name, release = (other.name, other.version) if other else (framework.name, framework.version)
    same = Install((f"{other.name}=={other.version}",)) if other else again(framework)
    return (
        Remedy(
            f"Install {name} {release} again: it was being loaded (from {path}), and a bus error "
            "then means that one of its files is shorter than it should be, as after a full disk.",
            same._replace(options=("force-reinstall", "no-deps")),
        ),
    )


def _for_illegal_instruction(probe: Probe) -> list[Remedy]:
    if not probe.illegal_instruction:
        return []
    return [
        Remedy(
            "Check whether it also crashes when oneDNN uses fewer instructions of the processor.",
            SetVariable("ONEDNN_MAX_CPU_ISA", "AVX2"),
        )
    ]
