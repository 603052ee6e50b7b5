"""The framework does not finish a small piece of work within the time limit.

## Why it happens

A driver call that does not return, another process that holds the GPU or a lock, a network home
directory, or work that is only slow: a GPU for which the build has no machine code makes the
driver compile every kernel first, which takes minutes and up to half an hour the first time.

## What it looks like

Nothing. The program stands still at its import, at its first look at the devices or at its first
operation.

## Fix

If kernels are being compiled, let it finish once: the driver keeps the result. Otherwise the
stage at which it stands says where to look; for the driver, see what `nvidia-smi` answers.

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

A framework that was still running when its time was up, or that a busy machine did not let run,
may only be slow.

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
from whygpu.causes.evidence.probe_ends import imported, own_probes, quoted, said
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
"""TensorFlow's announcement that the driver will compile for a long time."""


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
    announced = said(probe, COMPILING)
    reason = "; it announced that it compiles its kernels for this GPU" if announced else ""
    evidence: tuple[Evidence, ...] = (quoted(probe, f"no end after {probe.how}"),)
    if announced:
        evidence += (quoted(probe, announced.string),)
    elif probe.log:
        evidence += (quoted(probe, probe.log[-1]),)
    return CAUSE.finding(
        subject=framework.name,
        message=(
            f"{titled(framework)} did not finish within {probe.how}: it stood at "
            f"{probe.stage!r}{reason}"
        ),
        evidence=evidence,
        remedies=_remedies(probe, compiling=announced is not None),
    )


def _remedies(probe: Probe, *, compiling: bool) -> tuple[Remedy, ...]:
    longer = Remedy(
        "Give it more time once; the driver keeps what it compiled in ~/.nv/ComputeCache.",
        command_line("whygpu check --timeout 1800"),
    )
    if compiling:
        return (longer,)
    if not imported(probe):
        return (
            Remedy(
                "See which import it stands at; a network folder on sys.path is a usual reason.",
                shell_script(PYTHON, " -X importtime -c 'import ", a_name(probe.name), "'"),
            ),
            Remedy(
                "Give it more time, should it only be slow.",
                command_line("whygpu check --timeout 600"),
            ),
        )
    return (
        Remedy(
            "See whether the driver still answers, and who else uses the GPU.",
            command_line("nvidia-smi"),
        ),
        longer,
    )
