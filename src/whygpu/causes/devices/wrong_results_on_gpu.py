"""A framework computes a wrong result on the GPU.

## Why it happens

The probe multiplies and convolves small integers. Their results are known, and exact in every
precision that GPUs use by default. A result that differs by more than rounding means a fault: a
defective or overclocked card, a bug of the driver or of a library for this card, or CUDA libraries
of several versions in one process.

## What it looks like

Nothing fails. Training diverges, losses are NaN, and predictions differ from those on the CPU.

## Fix

Do not trust results from this GPU until the reason is found. Update the driver and reinstall the
framework with its own CUDA libraries. If the result is still wrong, test the card.

## Fires on (machine)

```toml
only = ["torch"]
[[probes]]
name = "torch"
[[probes.operations]]
operation = "convolution"
requested = "cuda:0"
ran_on = "cuda:0"
kind = "gpu"
correct = false
```

## Quiet on (machine)

```toml
only = ["torch"]
```

## Cannot tell on (machine)

The operation ran, but its result could not be compared.

```toml
only = ["torch"]
[[probes]]
name = "torch"
[[probes.operations]]
operation = "matmul"
requested = "cuda:0"
ran_on = "cuda:0"
kind = "gpu"
correct = {unknown = "the result could not be read back"}
```

## Sources

- <https://docs.nvidia.com/deploy/xid-errors/>
- <https://developer.nvidia.com/dcgm>
- <https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.framework_installs import again
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy
from whygpu.model.observed import Absent, Known, Observed, Undetermined, Unknown, need
from whygpu.model.probe import Probe, ProbeOperation
from whygpu.model.remedy import command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Framework

CAUSE = cause("WG406", __name__, __doc__, severity="error", effect="broken")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    if machine.probes_left_out:
        raise Undetermined(machine.probes_left_out)
    for probe in machine.probes:
        wrong: list[ProbeOperation] = []
        for operation in probe.operations:
            if operation.kind != "gpu" or not isinstance(operation.ran_on, Known):
                continue
            if isinstance(operation.correct, Unknown):
                yield Gap(
                    f"the result of {display_name(probe.name)}'s {operation.operation} on "
                    f"{operation.requested}: {operation.correct.reason}"
                )
            elif isinstance(operation.correct, Known) and not operation.correct.value:
                wrong.append(operation)
        if wrong:
            yield _finding(machine, probe, wrong)


def _finding(machine: Snapshot, probe: Probe, wrong: list[ProbeOperation]) -> Finding:
    name = display_name(probe.name)
    framework = _framework(machine, probe)
    what = " and ".join(f"{item.operation} on {item.requested}" for item in wrong)
    return CAUSE.finding(
        subject=probe.name,
        message=f"{name} computes wrong results on the GPU: the result of {what} differs from the "
        "correct one by more than rounding",
        evidence=tuple(
            Evidence("probe", f"{name} probe", f"{item.operation} on {item.requested}: wrong")
            for item in wrong
        ),
        remedies=(
            Remedy(
                "Look for Xid messages in the kernel log.",
                shell_script("sudo dmesg | grep -i xid"),
            ),
            Remedy(
                "Reinstall the framework, so that its own CUDA libraries are complete.",
                again(framework.value) if isinstance(framework, Known) else None,
            ),
            Remedy(
                "Test the card (NVIDIA DCGM; it takes some minutes).",
                command_line("dcgmi diag -r 2"),
            ),
        ),
    )


def _framework(machine: Snapshot, probe: Probe) -> Observed[Framework]:
    """The framework that was probed; the driver's own probe has none."""
    if probe.name == "cuda":
        return Absent("a framework of that name")
    return machine.framework(probe.name)
