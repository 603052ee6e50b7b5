"""The framework does not finish a small task within the time limit.

## Why it happens

A driver call does not return, another process holds the GPU or a lock, the home directory is on a
slow network, or the task is only slow. If the build has no machine code for the GPU, the driver
first compiles every kernel. This takes minutes, and up to half an hour the first time.

## What it looks like

No output. The program stops at the import, when it looks for devices, or at the first operation.

## Fix

If kernels are being compiled, let the program finish once: the driver keeps the result. Otherwise
the stage at which it stopped shows where to look. For the driver, check whether `nvidia-smi`
answers.

## Fires on (machine)

```toml
[probes.tensorflow]
ended = "timed-out"
how = "120 s"
stage = "matmul GPU:0"
```

## Quiet on (machine)

```toml
start = "no-gpu"
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
```

A framework may only be slow if it was still running when its time was up, or if the machine was too
busy to run it.

```toml
[probes.tensorflow]
ended = "cut-short"
how = "120 s, of which this busy machine let it run for 3.1 s"
stage = "import"
operations = []
```

## Sources

- <https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#just-in-time-compilation>
- <https://www.tensorflow.org/install/gpu>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.probe_ends import imported, message_in, own_probes, quoted
from whygpu.model.cause import cause
from whygpu.model.derived import MORE_TIME
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Known, Unknown
from whygpu.model.probe import Probe
from whygpu.model.remedy import PYTHON, a_name, command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

CAUSE = cause("WG316", __name__, __doc__, severity="error", effect="broken")

COMPILING = late(r"jit-compiled from PTX|compiled from PTX|will be JIT compiled", re.I)
"""TensorFlow announces that the driver will compile for a long time."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    for framework, probe in own_probes(machine):
        if isinstance(probe, Unknown):
            yield Gap(probe.reason)
        elif isinstance(probe, Known) and probe.value.ended == "cut-short":
            where = f"{probe.value.how} (at: {probe.value.stage})"
            yield Gap(f"{titled(framework)} was not finished after {where}; {MORE_TIME}")
        elif isinstance(probe, Known) and probe.value.ended == "timed-out":
            yield _finding(framework, probe.value)


def _finding(framework: Framework, probe: Probe) -> Finding:
    announced = message_in(probe, COMPILING)
    reason = "; it announced that it compiles its kernels for this GPU" if announced else ""
    evidence: tuple[Evidence, ...] = (quoted(probe, f"not finished after {probe.how}"),)
    if announced:
        evidence += (quoted(probe, announced.string),)
    elif probe.log:
        evidence += (quoted(probe, probe.log[-1]),)
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} did not finish within {probe.how}: it stopped at "
            f"{probe.stage!r}{reason}"
        ),
        evidence=evidence,
        remedies=_remedies(probe, compiling=announced is not None),
    )


def _remedies(probe: Probe, *, compiling: bool) -> tuple[Remedy, ...]:
    longer = Remedy(
        "Give it more time once; the driver keeps the compiled kernels in ~/.nv/ComputeCache.",
        command_line("whygpu check --timeout 1800"),
    )
    if compiling:
        return (longer,)
    if not imported(probe):
        return (
            Remedy(
                "Check at which import it stops; a network folder on sys.path is a usual reason.",
                shell_script(PYTHON, " -X importtime -c 'import ", a_name(probe.name), "'"),
            ),
            Remedy(
                "Give it more time, in case it is only slow.",
                command_line("whygpu check --timeout 600"),
            ),
        )
    return (
        Remedy(
            "Check whether the driver answers, and which other programs use the GPU.",
            command_line("nvidia-smi"),
        ),
        longer,
    )
