"""Faulty memory of a GPU waits for its repair, or can no longer be repaired.

## Why it happens

A GPU replaces memory in which an error was found: from Ampere on a row by a spare row, before that
it retires the page. The replacement takes effect when the GPU is reset. Until then the faulty
memory may be used again. If no spare row is left, the card has to be replaced.

## What it looks like

Programs end with `CUDA_ERROR_ECC_UNCORRECTABLE` or an Xid 48, 63, 64, 94 or 95 now and then, each
time in another place; in between, everything works.

## Fix

Drain the node, end all programs on the GPU and reset it. If the repair has failed, contact the
vendor.

## Fires on (machine)

```toml
[driver.gpus.0.health.rows]
uncorrected = 1
pending = true
```

No spare row was left.

```toml
[driver.gpus.0.health.rows]
uncorrected = 9
failed = true
```

A GPU from before Ampere.

```toml
[driver.gpus.0.health]
rows = {absent = "NVML: Not Supported"}
pages_pending = true
```

## Quiet on (machine)

Rows that were replaced earlier.

```toml
[driver.gpus.0.health.rows]
corrected = 2
uncorrected = 1
```

## Cannot tell on (machine)

```toml
[driver.gpus.0.health]
rows = {unknown = "NVML: Unknown Error"}
```

```toml
[driver.gpus.0.health]
pages_pending = {unknown = "NVML: Unknown Error"}
```

## Sources

- <https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/>
- <https://docs.nvidia.com/deploy/dynamic-page-retirement/>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.gpu_health import reported
from whygpu.model.cause import cause
from whygpu.model.driver import Gpu
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, Severity, seen
from whygpu.model.observed import NotApplicable
from whygpu.model.remedy import a_number, command_line
from whygpu.model.snapshot import Snapshot

CAUSE = cause("WG112", __name__, __doc__, severity="warning", effect="none")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    rows_of = list(reported(machine, "memory repairs", lambda health: health.rows))
    pages_of = list(reported(machine, "retired pages", lambda health: health.pages_pending))
    if not rows_of and not pages_of:
        raise NotApplicable("no GPU reports memory repairs or retired pages")
    for item in rows_of:
        if isinstance(item, Gap):
            yield item
            continue
        gpu, rows = item
        if rows.value.failed:
            yield _failed(gpu, seen(rows, "row remapping failure: yes"))
        elif rows.value.pending:
            yield _pending(gpu, "a memory row", seen(rows, "row remapping pending: yes"))
    for page in pages_of:
        if isinstance(page, Gap):
            yield page
        elif page[1].value:
            yield _pending(page[0], "a memory page", seen(page[1], "page retirement pending: yes"))


def _failed(gpu: Gpu, evidence: Evidence) -> Finding:
    return _finding(
        gpu,
        "has faulty memory that it could not replace: no spare row was left",
        evidence,
        (
            Remedy(
                "Take the card out of use and contact its vendor.",
                command_line("nvidia-smi -q -d ROW_REMAPPER,ECC -i", a_number(gpu.number)),
            ),
        ),
        "error",
    )


def _pending(gpu: Gpu, what: str, evidence: Evidence) -> Finding:
    return _finding(
        gpu,
        f"has found {what} faulty and replaces it only when it is reset",
        evidence,
        (
            Remedy(
                "End all programs on the GPU, also the desktop and monitoring such as DCGM, and reset it.",
                command_line("sudo nvidia-smi --gpu-reset -i", a_number(gpu.number)),
            ),
        ),
        "warning",
    )


def _finding(
    gpu: Gpu, problem: str, evidence: Evidence, remedies: tuple[Remedy, ...], severity: Severity
) -> Finding:
    return CAUSE.finding(
        subject=MACHINE,
        message=f"GPU {gpu.number} ({gpu.name}) {problem}",
        evidence=(evidence,),
        remedies=remedies,
        severity=severity,
    )
