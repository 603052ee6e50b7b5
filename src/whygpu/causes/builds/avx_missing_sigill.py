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
[system.cpu]
instruction_sets = ["sse4_2"]
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

The signal alone is no proof: this processor has AVX.

```toml
[probes.tensorflow]
ended = "signal"
how = "SIGILL"
stage = "import"
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

The processor has what TensorFlow needs, as it says itself: this one died of something else.

```
I tensorflow/core/platform/cpu_feature_guard.cc:210] To enable the following instructions: AVX2 AVX512F FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.
Illegal instruction (core dumped)
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

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.illegal_instructions import (
    ASK,
    SIGNAL,
    WHICH_SETS,
    Refused,
    lacking,
    listed_sets,
    looked_at,
    refused_in,
    without_avx,
)
from whygpu.causes.evidence.log_subjects import ended_after, framework_title, subject_of
from whygpu.causes.evidence.probe_ends import failed_saying, imported, own_probes, quoted
from whygpu.model.cause import cause
from whygpu.model.finding import Confidence, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.probe import Probe
from whygpu.model.remedy import a_name, command_line
from whygpu.model.snapshot import Snapshot
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
        missing = lacking(machine.system.cpu, framework)
        if isinstance(probe, Known):
            proof = _proof(probe.value)
            if proof is not None:
                yield _finding(machine, framework, missing, proof)
                continue
            if probe.value.illegal_instruction:
                yield _of_refusal(machine, framework, missing, probe.value)
                continue
            if imported(probe.value):
                continue
        if isinstance(missing, Unknown):
            yield Gap(missing.reason)
        elif isinstance(missing, Known) and not isinstance(probe, Known):
            yield _finding(machine, framework, missing, None)


def _of_refusal(
    machine: Snapshot, framework: Framework, missing: Observed[str], probe: Probe
) -> Finding | Gap:
    """The signal alone is no proof: an instruction that is listed may trap, and so does garbage."""
    cpu = machine.system.cpu
    if isinstance(missing, Known) or without_avx(cpu):
        proof = quoted(probe, "ended by SIGILL, an illegal instruction")
        return _finding(machine, framework, missing, proof)
    return Gap(f"{titled(framework)} died of an illegal instruction, and {looked_at(cpu)}")


def _proof(probe: Probe) -> Evidence | None:
    """The framework's own words."""
    match = failed_saying(probe, MESSAGES)
    return quoted(probe, match.string) if match else None


def _finding(
    machine: Snapshot, framework: Framework, missing: Observed[str], proof: Evidence | None
) -> Finding:
    cpu = machine.system.cpu
    model = f" ({cpu.model.value})" if isinstance(cpu.model, Known) else ""
    if isinstance(missing, Known):
        said_missing = f"uses {missing.value} instructions, which this processor{model} lacks"
    elif without_avx(cpu):
        said_missing = (
            f"used an instruction that this processor{model} does not have; it has no AVX"
        )
    else:
        said_missing = f"used an instruction that this processor{model} does not have"
    evidence = [] if proof is None else [proof]
    if isinstance(missing, Known):
        evidence.append(seen(framework.build.cpu_features, f"needs {missing.value}"))
    if isinstance(missing, Known) or without_avx(cpu):
        evidence.append(seen(cpu.instruction_sets, " ".join(listed_sets(cpu))))
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


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    told, lacks, refused = log.first(MESSAGES), log.first(_LACKS), refused_in(log)
    if told is None and lacks is None and (refused is None or refused.has_avx):
        return
    first = told or lacks or (refused.first if refused is not None else None)
    assert first is not None
    which = (told.groups["tensorflow"] or told.groups["jaxlib"]) if told else None
    yield CAUSE.finding(
        subject=subject_of(log),
        message=_message_of_log(log, which, refused),
        evidence=log.evidence(
            *(match.line for pattern in (MESSAGES, _LACKS, SIGNAL) for match in log.find(pattern)),
            *ended_after(log, first.line),
        ),
        remedies=(
            Remedy("See whether the processor has AVX.", WHICH_SETS),
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
        confidence=_confidence_of_log(told is not None, lacks is not None, refused),
        ask=ASK,
    )


def _message_of_log(log: Log, which: str | None, refused: Refused | None) -> str:
    if which:
        return (
            f"{framework_title(log)} uses {which} instructions, which this processor does not have"
        )
    needed = "binaries of TensorFlow from 1.6 on, of jaxlib and of others need AVX"
    if refused is None or refused.has_avx is False:
        return f"the program used an instruction that this processor does not have; {needed}"
    return (
        "the program died of an illegal instruction, most often because the processor has no AVX: "
        f"{needed}"
    )


def _confidence_of_log(told: bool, lacks: bool, refused: Refused | None) -> Confidence:
    """What is listed and traps, and a jump into garbage, raise the same signal."""
    if told:
        return "certain"
    return "possible" if refused is not None and refused.worked and not lacks else "likely"
