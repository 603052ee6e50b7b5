"""A GPU reports a hardware fault: it is lost, or its memory has errors that cannot be corrected.

## Why it happens

The card crashed, overheated, lost power or its seat in the slot, and the driver cannot reach it
any more ("fallen off the bus"); or a cell of its memory failed in a way that the error correction
could detect but not repair. The driver notes each in the kernel's log as an Xid.

## What it looks like

- nvidia-smi shows `ERR!`, or says that a GPU is lost or has to be reset.
- `CUDA_ERROR_ECC_UNCORRECTABLE`, "uncorrectable ECC error encountered".
- Programs hang or die in a different place each time.

## Fix

Reset the GPU or restart the machine. Errors of memory that come back after that, or an Xid that
repeats, are a matter for the card's vendor.

## Fires on (machine)

```toml
[driver]
state = "lost"
detail = "GPU 0: GPU is lost"
gpus = {unknown = "NVML could not tell: GPU is lost"}
```

Errors of memory since the driver was loaded.

```toml
[driver.gpus.0]
ecc_uncorrected = 3
```

## Quiet on (machine)

A card without error correction counts no errors.

```toml
[driver.gpus.0]
ecc_uncorrected = {absent = "error-correcting memory on this GPU"}
```

## Cannot tell on (machine)

```toml
[driver.gpus.0]
ecc_uncorrected = {unknown = "NVML: Unknown Error"}
```

## Sources

- <https://docs.nvidia.com/deploy/xid-errors/>
- <https://docs.nvidia.com/deploy/dynamic-page-retirement/>
- <https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.shared_driver import CONSEQUENCES
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.driver import Gpu
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.observed import Known, Unknown, need, need_or
from whygpu.model.snapshot import Snapshot

CAUSE = cause(
    "WG107",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(*CONSEQUENCES, "framework-crashes", "framework-hangs", "wrong-results-on-gpu"),
)

_HARDWARE_WORDS = ("uncorrectable ecc", "ecc_uncorrectable", "gpu is lost", "fallen off the bus")

_LOOK = Remedy(
    "The kernel's log has the number of the fault (Xid), which NVIDIA's catalogue explains.",
    "sudo dmesg | grep -i xid",
)


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    failures = tuple(_failed_in_probes(machine))
    state = machine.driver.state
    if isinstance(state, Known) and state.value == "lost":
        yield _lost(machine, failures)
        return
    counted = False
    for gpu in need_or(machine.driver.gpus, ()):
        errors = gpu.ecc_uncorrected
        if isinstance(errors, Unknown):
            yield Gap(f"errors in the memory of GPU {gpu.number} ({gpu.name}): {errors.reason}")
        elif isinstance(errors, Known) and errors.value:
            counted = True
            yield _memory_errors(gpu, errors, failures)
    if failures and not counted:
        yield _only_in_probes(failures)


def _failed_in_probes(machine: Snapshot) -> Iterator[Evidence]:
    """Operations that failed with the words of a hardware fault."""
    for probe in machine.probes:
        for operation in probe.operations:
            if isinstance(operation.ran_on, Unknown) and any(
                word in operation.ran_on.reason.lower() for word in _HARDWARE_WORDS
            ):
                where = f"{display_name(probe.name)} probe, {operation.operation}"
                yield Evidence("probe", where, operation.ran_on.reason)


def _lost(machine: Snapshot, failures: tuple[Evidence, ...]) -> Finding:
    state = machine.driver.state
    return CAUSE.finding(
        subject=MACHINE,
        message="the driver has lost a GPU, which no longer answers or has to be reset: "
        f"{machine.driver.detail or 'GPU is lost'}",
        evidence=(seen(state, machine.driver.detail or "lost"), *failures),
        remedies=(
            _LOOK,
            Remedy(
                "End all work on the GPU and reset it; where that is refused, restart.",
                "sudo nvidia-smi --gpu-reset",
            ),
            Remedy(
                "If it happens again, check the card's power cables, its seat and its "
                "temperature, and take it to its vendor."
            ),
        ),
    )


def _memory_errors(gpu: Gpu, errors: Known[int], failures: tuple[Evidence, ...]) -> Finding:
    times = "one error" if errors.value == 1 else f"{errors.value} errors"
    return CAUSE.finding(
        subject=MACHINE,
        message=f"GPU {gpu.number} ({gpu.name}) has had {times} in its memory that could not be "
        "corrected since its driver was loaded; programs that touched that memory were ended",
        evidence=(seen(errors, f"{times} not corrected"), *failures),
        remedies=(
            Remedy(
                "End all work on the GPU and reset it, so that the bad memory is taken out of use.",
                f"sudo nvidia-smi --gpu-reset -i {gpu.number}",
            ),
            Remedy(
                "See whether replacement memory is left.",
                f"nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT -i {gpu.number}",
            ),
            _LOOK,
        ),
        confidence="certain" if failures else "likely",
        # Alone, the count is history: only a failed operation shows that it hurts now.
        severity="error" if failures else "warning",
    )


def _only_in_probes(failures: tuple[Evidence, ...]) -> Finding:
    return CAUSE.finding(
        subject=MACHINE,
        message=f"work on the GPU fails with a hardware fault: {failures[0].text}",
        evidence=failures,
        remedies=(_LOOK, Remedy("Reset the GPU.", "sudo nvidia-smi --gpu-reset")),
    )
