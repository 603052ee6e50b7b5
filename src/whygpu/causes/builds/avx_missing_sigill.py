"""The processor lacks instructions that the framework's binaries use.

## Why it happens

TensorFlow since 1.6 and jaxlib are built for processors with AVX. Old processors, some Celeron,
Pentium and Atom models, and virtual machines with a generic processor model do not have it.

## What it looks like

`Illegal instruction (core dumped)`, exit status 132. Current TensorFlow crashes when its library is
loaded and prints no explanation. jaxlib explains it: `This version of jaxlib was built using AVX
instructions, which your CPU and/or operating system do not support`.

## Fix

In a virtual machine, pass through the host's processor model. On an old processor, use a build
without these instructions: one from conda-forge, or one compiled on that machine.

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

Instructions that the processor has but the build does not use are not a fault.

```
2019-02-01 10:00:00.100000: I tensorflow/core/platform/cpu_feature_guard.cc:141] Your CPU supports instructions that this TensorFlow binary was not compiled to use: AVX2 FMA
```

TensorFlow reports that the processor has the instructions it needs: it crashed for another reason.

```
I tensorflow/core/platform/cpu_feature_guard.cc:210] To enable the following instructions: AVX2 AVX512F FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.
Illegal instruction (core dumped)
```

An illegal instruction on the GPU has other causes.

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
from whygpu.causes.evidence.log_subjects import (
    ended_after,
    framework_title,
    is_tensorflow,
    subject_of,
)
from whygpu.causes.evidence.probe_ends import failure_message, imported, own_probes, quoted
from whygpu.model.cause import cause
from whygpu.model.finding import Confidence, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.probe import Probe
from whygpu.model.remedy import Command, a_name, command_line
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
                yield _from_signal(machine, framework, missing, probe.value)
                continue
            if imported(probe.value):
                continue
        if isinstance(missing, Unknown):
            yield Gap(missing.reason)
        elif isinstance(missing, Known) and not isinstance(probe, Known):
            yield _finding(machine, framework, missing, None)


def _from_signal(
    machine: Snapshot, framework: Framework, missing: Observed[str], probe: Probe
) -> Finding | Gap:
    """The signal alone is no proof: a listed instruction can trap, and so can corrupt code."""
    cpu = machine.system.cpu
    if isinstance(missing, Known) or without_avx(cpu):
        proof = quoted(probe, "ended by SIGILL, an illegal instruction")
        return _finding(machine, framework, missing, proof)
    return Gap(f"{titled(framework)} crashed with an illegal instruction; {looked_at(cpu)}")


def _proof(probe: Probe) -> Evidence | None:
    """The framework's own message."""
    match = failure_message(probe, MESSAGES)
    return quoted(probe, match.string) if match else None


def _finding(
    machine: Snapshot, framework: Framework, missing: Observed[str], proof: Evidence | None
) -> Finding:
    cpu = machine.system.cpu
    model = f" ({cpu.model.value})" if isinstance(cpu.model, Known) else ""
    if isinstance(missing, Known):
        reason = f"uses {missing.value} instructions, which this processor{model} lacks"
    elif without_avx(cpu):
        reason = f"used an instruction that this processor{model} does not have; it has no AVX"
    else:
        reason = f"used an instruction that this processor{model} does not have"
    evidence = [] if proof is None else [proof]
    if isinstance(missing, Known):
        evidence.append(seen(framework.build.cpu_features, f"needs {missing.value}"))
    if isinstance(missing, Known) or without_avx(cpu):
        evidence.append(seen(cpu.instruction_sets, " ".join(listed_sets(cpu))))
    return CAUSE.finding(
        subject=framework.name,
        message=f"{titled(framework)} {reason}",
        evidence=tuple(evidence),
        remedies=(
            Remedy(
                "Use a build that works without these instructions.",
                command_line(
                    "conda install -c conda-forge",
                    a_name(_CONDA_NAMES.get(framework.name, framework.name)),
                ),
            ),
            Remedy(
                "In a virtual machine, give it the host's processor model (QEMU: -cpu host, "
                "Proxmox: CPU type host)."
            ),
        ),
        # Corrupt code raises the same signal, so this is only likely without a missing set.
        confidence="certain" if isinstance(missing, Known) else "likely",
    )


def _from_conda(log: Log) -> Command | None:
    name = "tensorflow" if is_tensorflow(log) else log.framework
    known = _CONDA_NAMES.get(name, name)
    return command_line("conda install -c conda-forge", a_name(known)) if known else None


_LACKS = late(
    r"(?:CPU|[Pp]rocessor|machine) (?:does not|doesn't) (?:support|have) (?:the )?AVX"
    r"|requires a (?:CPU|processor) (?:with|that supports) AVX"
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statement, lacks, refused = log.first(MESSAGES), log.first(_LACKS), refused_in(log)
    suspicious = refused is not None and (not refused.has_avx or refused.lacks_avx2)
    if statement is None and lacks is None and not suspicious:
        return
    first = statement or lacks or (refused.first if refused is not None else None)
    assert first is not None
    which = (statement.groups["tensorflow"] or statement.groups["jaxlib"]) if statement else None
    yield CAUSE.finding(
        subject=subject_of(log),
        message=_message_of_log(log, which, refused),
        evidence=log.evidence(
            *(match.line for pattern in (MESSAGES, _LACKS, SIGNAL) for match in log.find(pattern)),
            *ended_after(log, first.line),
        ),
        remedies=(
            Remedy("Check whether the processor has AVX.", WHICH_SETS),
            Remedy(
                "Without AVX, use a build that works without it, such as conda-forge's"
                + (", or TensorFlow 1.5." if is_tensorflow(log) else "."),
                _from_conda(log),
            ),
            Remedy(
                "In a virtual machine, give it the host's processor model (QEMU: -cpu host, "
                "Proxmox: CPU type host)."
            ),
        ),
        confidence=_confidence_of_log(statement is not None, lacks is not None, refused),
        ask=ASK,
    )


def _message_of_log(log: Log, which: str | None, refused: Refused | None) -> str:
    if which:
        return (
            f"{framework_title(log)} uses {which} instructions, which this processor does not have"
        )
    if refused is not None and refused.lacks_avx2:
        return (
            "the program crashed with an illegal instruction; the processor has AVX, but not AVX2, "
            "which some builds use"
        )
    needed = "TensorFlow 1.6 or newer, jaxlib and other packages need AVX"
    if refused is None or refused.has_avx is False:
        return f"the program used an instruction that this processor does not have; {needed}"
    return (
        "the program crashed with an illegal instruction, most often because the processor has no "
        f"AVX: {needed}"
    )


def _confidence_of_log(statement: bool, lacks: bool, refused: Refused | None) -> Confidence:
    """A listed instruction that traps, and corrupt code, raise the same signal."""
    if statement:
        return "certain"
    return "possible" if refused is not None and refused.worked and not lacks else "likely"
