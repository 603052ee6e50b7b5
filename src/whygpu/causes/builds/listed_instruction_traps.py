"""The processor lists an instruction set, but executing its instructions fails on this machine.

## Why it happens

Libraries ask the processor which instructions it has and use the best ones. A virtual machine can
show an instruction set to its guest although the instructions do not work. This has been seen with
AMX: the flags `amx_tile` and `amx_bf16` are set and the kernel permits the use of tiles, but the
first tile instruction ends the process. oneDNN, the CPU library of TensorFlow and PyTorch, uses AMX
for matrix products in bfloat16 and int8.

## What it looks like

`Illegal instruction (core dumped)`, exit status 132, in a model that uses bfloat16 on the CPU, or
under `torch.autocast("cpu")`. The same model works in float32.

## Fix

Prevent oneDNN from using these instructions: set `ONEDNN_MAX_CPU_ISA` before the program starts.
`whygpu run` does this. For a permanent fix, ask the administrator to make the instructions work in
the virtual machine, or to remove them from its list.

## Fires on (machine)

```toml
only = ["torch"]
[system.cpu]
instruction_sets = ["amx_bf16", "amx_tile", "avx", "avx2", "avx512f"]
[[system.cpu.trials]]
feature = "avx512f"
outcome = "runs"
[[system.cpu.trials]]
feature = "amx_tile"
outcome = "traps"
```

## Quiet on (machine)

The instructions work.

```toml
[system.cpu]
instruction_sets = ["amx_bf16", "amx_tile", "avx", "avx2", "avx512f"]
[[system.cpu.trials]]
feature = "amx_tile"
outcome = "runs"
```

oneDNN is prevented from using them.

```toml
only = ["torch"]
[environment.variables.ONEDNN_MAX_CPU_ISA]
value = "AVX512_CORE_FP16"
[system.cpu]
instruction_sets = ["amx_bf16", "amx_tile", "avx", "avx2", "avx512f"]
[[system.cpu.trials]]
feature = "amx_tile"
outcome = "traps"
```

## Cannot tell on (machine)

```toml
[system.cpu]
instruction_sets = ["amx_bf16", "amx_tile", "avx", "avx2", "avx512f"]
trials = {unknown = "no memory to run machine code in: Permission denied"}
[probes.torch]
ended = "signal"
how = "SIGILL"
stage = "matmul cpu"
```

## Fires on (log)

TensorFlow reports that the processor lists AMX.

```
I tensorflow/core/platform/cpu_feature_guard.cc:227] To enable the following instructions: AVX2 AVX512F AVX512_VNNI AVX512_BF16 AVX512_FP16 AVX_VNNI AMX_TILE AMX_INT8 AMX_BF16 FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.
Illegal instruction (core dumped)
```

## Quiet on (log)

```
>>> import tensorflow as tf
Illegal instruction (core dumped)
```

## Sources

- <https://uxlfoundation.github.io/oneDNN/dev_guide_cpu_dispatcher_control.html>
- <https://docs.kernel.org/arch/x86/xstate.html>
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.illegal_instructions import (
    ASK,
    refused_in,
    trapping,
    trapping_in_use,
)
from whygpu.causes.evidence.log_subjects import ended_after, subject_of
from whygpu.causes.evidence.probe_ends import own_probes, quoted
from whygpu.causes.evidence.run_advice import REPAIRED_RUN
from whygpu.model.cause import cause
from whygpu.model.derived import and_list
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known, need
from whygpu.model.probe import Probe
from whygpu.model.remedy import SetVariable
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import Cpu
from whygpu.model.target import Framework
from whygpu.tables.onednn_isa import USERS, limit_without

CAUSE = cause("WG320", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    crashed = any(probe.illegal_instruction for probe in machine.probes)
    if not crashed and not isinstance(machine.system.cpu.trials, Known):
        # No reason for suspicion: normally a listed instruction works.
        return
    unusable = need(trapping_in_use(machine))
    tiles = any(name.startswith("amx_") for name in unusable)
    exposed: list[Framework] = []
    for framework, probe in own_probes(machine):
        if isinstance(probe, Known) and probe.value.illegal_instruction:
            if unusable:
                yield _crashed(machine, framework, probe.value, unusable)
        elif tiles and framework.name in USERS:
            exposed.append(framework)
    if exposed:
        yield _would_crash(machine, exposed, unusable)


def _crashed(
    machine: Snapshot, framework: Framework, probe: Probe, unusable: Collection[str]
) -> Finding:
    return CAUSE.finding(
        subject=framework.name,
        message=f"{titled(framework)} crashed with an illegal instruction; "
        f"{_trap(machine, unusable)}",
        evidence=(
            quoted(probe, "ended by SIGILL, an illegal instruction"),
            *_evidence(machine.system.cpu, unusable),
        ),
        remedies=_remedies(unusable),
        severity="error",
        effect="broken",
        # It is not known which instruction ended the process.
        confidence="likely",
    )


def _would_crash(
    machine: Snapshot, exposed: Sequence[Framework], unusable: Collection[str]
) -> Finding:
    users = and_list([titled(framework) for framework in exposed])
    return CAUSE.finding(
        subject=exposed[0].name if len(exposed) == 1 else MACHINE,
        message=f"{_trap(machine, unusable)}; matrix products in bfloat16 and int8 on the CPU use "
        f"{_them(unusable)} and crash a program with {users}",
        evidence=_evidence(machine.system.cpu, unusable),
        remedies=_remedies(unusable),
    )


def _trap(machine: Snapshot, unusable: Collection[str]) -> str:
    cpu = machine.system.cpu
    model = f" ({cpu.model.value})" if isinstance(cpu.model, Known) else ""
    return f"this processor{model} {_lists(unusable)}"


def _lists(unusable: Collection[str]) -> str:
    return f"lists {and_list(list(unusable))}, but executing {_them(unusable)} fails here"


def _them(unusable: Collection[str]) -> str:
    return "it" if len(unusable) == 1 else "them"


def _evidence(cpu: Cpu, unusable: Collection[str]) -> tuple[Evidence, ...]:
    named = " ".join(unusable)
    return (
        seen(cpu.instruction_sets, f"lists {named}"),
        seen(cpu.trials, f"{named}: illegal instruction"),
    )


def _remedies(unusable: Collection[str]) -> tuple[Remedy, ...]:
    limit = limit_without(unusable).value
    flags = ",".join(f"-{name.replace('_', '-')}" for name in unusable)
    return (
        REPAIRED_RUN,
        Remedy(
            "Or prevent oneDNN from using these instructions, before the program starts.",
            SetVariable("ONEDNN_MAX_CPU_ISA", limit),
        ),
        Remedy(
            "In a virtual machine, ask its administrator to make the instructions work or to "
            f"remove their flags (QEMU: -cpu host,{flags})."
        ),
    )


def _question(unusable: Collection[str]) -> str:
    limit = limit_without(unusable).value
    return f"Does the program still crash with ONEDNN_MAX_CPU_ISA={limit} set?"


_IN_BFLOAT16 = late(r"bfloat16|\bbf16\b|\bint8\b|[Aa]utocast|mixed_precision")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    refused = refused_in(log)
    if refused is None:
        return
    cpu, in_bfloat16 = log.processor, log.says(_IN_BFLOAT16)
    unusable = trapping(cpu) if cpu is not None else None
    if cpu is not None and isinstance(unusable, Known):
        if not unusable.value:
            # They all work, so the reason is another one.
            return
        message = (
            f"the program crashed with an illegal instruction: this processor "
            f"{_lists(unusable.value)}"
        )
        evidence, names = _evidence(cpu, unusable.value), unusable.value
    elif refused.has_avx is not False and (refused.lists_amx or refused.worked or in_bfloat16):
        message = (
            "the program crashed with an illegal instruction. Some virtual machines list AMX "
            "although it does not work, which crashes products in bfloat16 and int8 on the CPU"
        )
        evidence, names = (), ("amx_tile", "amx_bf16", "amx_int8")
    else:
        return
    yield CAUSE.finding(
        subject=subject_of(log),
        message=message,
        evidence=(
            *log.evidence(
                *refused.listing, refused.first.line, *ended_after(log, refused.first.line)
            ),
            *evidence,
        ),
        remedies=_remedies(names),
        severity="error",
        effect="broken",
        confidence="likely" if evidence or (refused.lists_amx and in_bfloat16) else "possible",
        ask=_question(names) if refused.has_avx else ASK,
    )
