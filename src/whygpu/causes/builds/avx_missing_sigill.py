"""The processor lacks instructions that the framework's binaries use.

## Why it happens

TensorFlow since 1.6 and jaxlib are built for processors with AVX. Old processors, some Celeron,
Pentium and Atom models, and virtual machines with a generic processor model do not have it.

## What it looks like

`Illegal instruction (core dumped)`, exit code 132, and from current TensorFlow not a word of
explanation, already when its library is loaded. jaxlib says it: `This version of jaxlib was built
using AVX instructions, which your CPU and/or operating system do not support`.

## Fix

In a virtual machine, pass the host's processor through. On an old processor only a build without
these instructions helps: one from conda-forge, or one compiled on that machine.

## Fires on (machine)

```toml
only = ["tensorflow"]
probes_left_out = "--no-probe"
[system.cpu]
instruction_sets = ["sse4_2"]
```

```toml
[probes.tensorflow]
ended = "signal"
how = "SIGILL"
stage = "import"
```

## Quiet on (machine)

```toml
start = "no-gpu"
[system.cpu]
instruction_sets = ["avx", "sse4_2"]
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
probes_left_out = "--no-probe"
[system.cpu]
instruction_sets = {unknown = "/proc/cpuinfo: permission denied"}
```

## Fires on (log)

```
2019-02-01 10:00:00.100000: F tensorflow/core/platform/cpu_feature_guard.cc:37] The TensorFlow library was compiled to use AVX2 instructions, but these aren't available on your machine.
Aborted (core dumped)
```

```
>>> import tensorflow as tf
Illegal instruction (core dumped)
```

```
RuntimeError: This version of jaxlib was built using AVX instructions, which your CPU and/or operating system do not support.
```

```
zsh: illegal hardware instruction  python train.py
```

## Quiet on (log)

Instructions that the processor has and the build does not use are no fault.

```
2019-02-01 10:00:00.100000: I tensorflow/core/platform/cpu_feature_guard.cc:141] Your CPU supports instructions that this TensorFlow binary was not compiled to use: AVX2 FMA
```

An illegal instruction on the GPU is another matter.

```
RuntimeError: CUDA error: an illegal instruction was encountered
```

## Sources

- <https://github.com/tensorflow/tensorflow/releases/tag/v1.6.0>
- <https://www.tensorflow.org/install/pip#hardware_requirements>
- <https://www.qemu.org/docs/master/system/qemu-cpu-models.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_builds import titled
from whygpu.causes.shared_logs import ended_after, framework_title, subject_of
from whygpu.causes.shared_probes import failed_saying, imported, own_probes, quoted
from whygpu.model.cause import cause
from whygpu.model.derived import and_list
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.late import late
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.probe import Probe
from whygpu.model.remedy import a_name, command_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import Cpu
from whygpu.model.target import Framework

CAUSE = cause(
    "WG306",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("framework-import-fails", "framework-crashes"),
)

MESSAGES = late(
    r"was compiled to use (?P<tensorflow>\S+) instructions, but these aren't available"
    r"|was built using (?P<jaxlib>\S+) instructions, which your CPU"
)

_CONDA_NAMES = {"torch": "pytorch"}


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for framework, probe in own_probes(machine):
        missing = _missing(machine.system.cpu, framework)
        if isinstance(probe, Known):
            proof = _proof(probe.value)
            if proof is not None:
                yield _finding(machine, framework, missing, proof)
                continue
            if imported(probe.value):
                continue
        if isinstance(missing, Unknown):
            yield Gap(missing.reason)
        elif isinstance(missing, Known) and not isinstance(probe, Known):
            yield _finding(machine, framework, missing, None)


def _missing(cpu: Cpu, framework: Framework) -> Observed[str]:
    """Instruction sets that the build uses and the processor lacks; absent when it has them."""
    used, there = framework.build.cpu_features, cpu.instruction_sets
    if not isinstance(used, Known):
        return used
    if not used.value:
        return Absent(used.source)
    if isinstance(there, Unknown):
        return Unknown(f"whether this processor suits {titled(framework)}: {there.reason}")
    lacking = [name.upper() for name in used.value if name not in _names(there)]
    return Known(and_list(lacking), used.source) if lacking else Absent(used.source)


def _names(instruction_sets: Observed[tuple[str, ...]]) -> tuple[str, ...]:
    return instruction_sets.value if isinstance(instruction_sets, Known) else ()


def _proof(probe: Probe) -> Evidence | None:
    if probe.ended == "signal" and probe.how == "SIGILL":
        return quoted(probe, "ended by SIGILL, an illegal instruction")
    match = failed_saying(probe, MESSAGES)
    return quoted(probe, match.string) if match else None


def _finding(
    machine: Snapshot, framework: Framework, missing: Observed[str], proof: Evidence | None
) -> Finding:
    cpu = machine.system.cpu
    model = f" ({cpu.model.value})" if isinstance(cpu.model, Known) else ""
    if isinstance(missing, Known):
        said_missing = f"uses {missing.value} instructions, which this processor{model} lacks"
    else:
        said_missing = f"used an instruction that this processor{model} does not have"
    evidence = [] if proof is None else [proof]
    if isinstance(missing, Known):
        evidence.append(seen(framework.build.cpu_features, f"needs {missing.value}"))
        evidence.append(seen(cpu.instruction_sets, " ".join(_names(cpu.instruction_sets))))
    return CAUSE.finding(
        subject=framework.name,
        message=f"{titled(framework)} {said_missing}",
        evidence=tuple(evidence),
        remedies=(
            Remedy(
                "In a virtual machine, give it the host's processor model (QEMU: -cpu host, "
                "Proxmox: CPU type host)."
            ),
            Remedy(
                "On a processor without these instructions, use a build that does without them.",
                command_line(
                    "conda install -c conda-forge",
                    a_name(_CONDA_NAMES.get(framework.name, framework.name)),
                ),
            ),
        ),
        # A jump into garbage raises the same signal, so without a lacking set it is only likely.
        confidence="certain" if isinstance(missing, Known) else "likely",
    )


_LACKS = late(
    r"(?:CPU|[Pp]rocessor|machine) (?:does not|doesn't) (?:support|have) (?:the )?AVX"
    r"|requires a (?:CPU|processor) (?:with|that supports) AVX"
)
_SIGNAL = late(
    r"\bIllegal [Ii]nstruction\b(?! Parameter)|\billegal (?:hardware instruction\b|instruction \(?core dump)"
    r"|Instrucci\w{1,2}n ilegal|Instru\w{2,4}o ilegal"
    r"|Instruction non permise|Ung\w{1,2}ltiger Maschinenbefehl|Istruzione non consentita"
    r"|\u975e\u6cd5\u6307\u4ee4|\u041d\u0435\u0434\u043e\u043f\u0443\u0441\u0442\u0438\u043c\u0430\u044f \u0438\u043d\u0441\u0442\u0440\u0443\u043a\u0446\u0438\u044f"
    r"|\bSIGILL\b|EXC_BAD_INSTRUCTION|(?:0xC000001D|3221225501|-1073741795)"
    r"|[Ee]xit(?:ed with)? (?:code|status):? 132\b|STATUS_ILLEGAL_INSTRUCTION"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    told, died = log.first(MESSAGES), log.first(_LACKS) or log.first(_SIGNAL)
    seen_first = told or died
    if seen_first is None:
        return
    which = (told.groups["tensorflow"] or told.groups["jaxlib"]) if told else None
    worked = told is None and any(line < seen_first.line for line in log.progress)
    yield CAUSE.finding(
        subject=subject_of(log),
        message=(
            f"{framework_title(log)} uses {which} instructions, which this processor does not have"
            if which
            else "the program used an instruction that this processor does not have; binaries of "
            "TensorFlow from 1.6 on, of jaxlib and of others need AVX"
        ),
        evidence=log.evidence(
            *(match.line for pattern in (MESSAGES, _LACKS, _SIGNAL) for match in log.find(pattern)),
            *ended_after(log, seen_first.line),
        ),
        remedies=(
            Remedy(
                "See whether the processor has AVX.",
                command_line("grep -o -m1 'avx[^ ]*' /proc/cpuinfo"),
            ),
            Remedy(
                "In a virtual machine, give it the host's processor model (QEMU: -cpu host, "
                "Proxmox: CPU type host)."
            ),
            Remedy(
                "On a processor without it, use a build that does without, such as conda-forge's, or "
                "TensorFlow 1.5.",
                command_line("conda install -c conda-forge tensorflow"),
            ),
        ),
        # A jump into garbage raises the same signal.
        confidence="certain" if told else "possible" if worked else "likely",
    )
