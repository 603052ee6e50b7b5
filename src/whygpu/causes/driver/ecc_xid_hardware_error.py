"""A GPU reports a hardware fault: it is lost, or its memory has uncorrectable errors.

## Why it happens

The card crashed, overheated, lost power or its contact in the slot, and the driver can no longer
reach it ("fallen off the bus"). Or a memory cell failed in a way that error correction could detect
but not repair. The driver writes each fault to the kernel log as an Xid.

## What it looks like

- nvidia-smi shows `ERR!`, or reports that a GPU is lost or has to be reset.
- `CUDA_ERROR_ECC_UNCORRECTABLE`, "uncorrectable ECC error encountered".
- Programs hang or crash in a different place each time.

## Fix

Reset the GPU or restart the machine. If memory errors or an Xid return after that, contact the
card's vendor.

## Fires on (machine)

```toml
[driver]
state = "lost"
detail = "GPU 0: GPU is lost"
gpus = {unknown = "NVML could not tell: GPU is lost"}
```

Memory errors since the driver was loaded.

```toml
[driver.gpus.0]
ecc_uncorrected = 3
```

A fault in the kernel log. Whether the GPU was reset after it cannot be seen.

```toml
[[driver.xids]]
address = "0000:41:00"
number = 48
times = 2
last_second = 90061
```

A product under load (`whygpu check --stress`) failed with a hardware fault.

```toml
[stress.0.test.rates.tf32]
speeds = {unknown = "RuntimeError: CUDA error: uncorrectable ECC error encountered"}
```

## Quiet on (machine)

Xid 31 is about a program, and 63 is a repair that was made.

```toml
[[driver.xids]]
address = "0000:41:00"
number = 31
times = 9
last_second = 90061
[[driver.xids]]
address = "0000:41:00"
number = 63
times = 1
last_second = 90061
```

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

## Fires on (log)

```
[415207.113842] NVRM: GPU at PCI:0000:3b:00: GPU-5c1f1e2a-0f6d-9f6e-3a5b-7d1f0c2b9e11
[415207.113850] NVRM: Xid (PCI:0000:3b:00): 79, pid=20817, name=python3, GPU has fallen off the bus.
```

```
RuntimeError: CUDA error: uncorrectable ECC error encountered
CUDA kernel errors might be asynchronously reported at some other API call,so the stacktrace below might be incorrect.
```

```
$ nvidia-smi
Unable to determine the device handle for GPU 0000:0B:00.0: GPU is lost.  Reboot the system to recover this GPU
```

## Quiet on (log)

A fault of a program also has an Xid: 31 means that a kernel accessed memory outside its own.

```
NVRM: Xid (PCI:0000:01:00): 31, pid=3391, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS
RuntimeError: CUDA error: an illegal memory access was encountered
```

## Sources

- <https://docs.nvidia.com/deploy/xid-errors/>
- <https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html>
- <https://docs.nvidia.com/deploy/dynamic-page-retirement/>
- <https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/>
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whygpu.causes.evidence.driver_state import CONSEQUENCES
from whygpu.causes.evidence.log_status_families import decided_by_code
from whygpu.causes.evidence.log_subjects import gpu_ends_after, subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, gpu_at, nvidia_gpu
from whygpu.model.driver import Gpu, XidCount
from whygpu.model.finding import MACHINE, Confidence, Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known, Observed, Unknown, need, need_or
from whygpu.model.remedy import a_number, command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.tables.xids import XIDS, XidAction, follows_a_program, is_of_the_hardware

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
    "Read the Xid number of the fault in the kernel log; NVIDIA's Xid catalogue explains it.",
    shell_script("sudo dmesg | grep -i xid"),
)


_FIRST_STEPS: dict[XidAction, tuple[Remedy, ...]] = {
    "check-program": (
        Remedy(
            "Look for a fault of the program first, with NVIDIA's memory checker: the driver "
            "reports this number for programs, and only seldom for the hardware.",
            command_line("compute-sanitizer python ..."),
        ),
    ),
    "restart-program": (Remedy("Start the program again; if the Xid returns, reset the GPU."),),
    "restart-machine": (Remedy("Restart the machine: a reset does not reach this GPU."),),
    "check-hardware": (
        Remedy("Switch the machine off and check the power cables and the slot of the card."),
    ),
    "none": (Remedy("Nothing has to be done at once, if the GPU works."),),
}
"""What NVIDIA's catalogue asks for before a reset."""
_WITHOUT_RESET: tuple[XidAction, ...] = ("restart-machine", "check-hardware")


def _first_steps(number: int | None, reset: Remedy) -> tuple[Remedy, ...]:
    row = XIDS.get(number) if number is not None else None
    action = row.action if row else "reset-gpu"
    steps = _FIRST_STEPS.get(action, ())
    return steps if action in _WITHOUT_RESET else (*steps, reset)


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
            yield Gap(f"memory errors of GPU {gpu.number} ({gpu.name}): {errors.reason}")
        elif isinstance(errors, Known) and errors.value:
            counted = True
            yield _memory_errors(gpu, errors, failures)
    yield from _logged(machine)
    if failures and not counted:
        yield _only_in_probes(failures)


def _failed_in_probes(machine: Snapshot) -> Iterator[Evidence]:
    """Operations that failed with the message of a hardware fault, also under load."""
    for probe in machine.probes:
        for operation in probe.operations:
            where = f"{display_name(probe.name)} probe, {operation.operation}"
            yield from _hardware_fault(operation.ran_on, where)
    for tested in machine.stress.value if isinstance(machine.stress, Known) else ():
        for rate in tested.test.value.rates if isinstance(tested.test, Known) else ():
            yield from _hardware_fault(rate.speeds, f"GPU {tested.number} under load, {rate.name}")


def _hardware_fault(result: Observed[Any], where: str) -> Iterator[Evidence]:
    if isinstance(result, Unknown) and any(
        word in result.reason.lower() for word in _HARDWARE_WORDS
    ):
        yield Evidence("probe", where, result.reason)


def _logged(machine: Snapshot) -> Iterator[Finding]:
    """Faults in the kernel log. Many users may not read it; then no finding depends on it."""
    logged = machine.driver.xids
    for xid in _of_our_hardware(machine):
        row = XIDS[xid.number]
        times = "once" if xid.times == 1 else f"{xid.times} times"
        yield CAUSE.finding(
            subject=MACHINE,
            message=f"since the machine was started, the driver has reported Xid {xid.number} for "
            f"{gpu_at(machine, xid.address)} {times}: {row.meaning}; the kernel log does not show "
            "whether that was repaired",
            evidence=(seen(logged, f"Xid {xid.number} at {xid.address}, {times}"),),
            remedies=(*_first_steps(xid.number, _reset(machine, xid.address)), _LOOK),
            confidence="likely",
            # Only history: what works now is not refuted by it.
            severity="warning",
            effect="none",
        )


def _of_our_hardware(machine: Snapshot) -> tuple[XidCount, ...]:
    logged = machine.driver.xids
    return tuple(
        xid
        for xid in (logged.value if isinstance(logged, Known) else ())
        if is_of_the_hardware(xid.number) and _is_ours(machine, xid.address)
    )


def _reset(machine: Snapshot, address: str) -> Remedy:
    number = next((g.number for g in _gpus(machine) if g.pci_address.startswith(address)), None)
    return Remedy(
        "If the GPU was not reset since then, end all programs on it and reset it.",
        None
        if number is None
        else command_line("sudo nvidia-smi --gpu-reset -i", a_number(number)),
    )


def _gpus(machine: Snapshot) -> tuple[Gpu, ...]:
    gpus = machine.driver.gpus
    return gpus.value if isinstance(gpus, Known) else ()


def _is_ours(machine: Snapshot, address: str) -> bool:
    """A container may show the kernel log of GPUs that it does not have."""
    if isinstance(machine.system.container, Absent):
        return True
    return any(gpu.pci_address.startswith(address) for gpu in _gpus(machine))


def _lost(machine: Snapshot, failures: tuple[Evidence, ...]) -> Finding:
    state = machine.driver.state
    reset = Remedy(
        "End all programs on the GPU and reset it; if the reset is refused, restart.",
        command_line("sudo nvidia-smi --gpu-reset"),
    )
    logged = machine.driver.xids
    last = max(_of_our_hardware(machine), key=lambda xid: xid.last_second, default=None)
    return CAUSE.finding(
        subject=MACHINE,
        message="the driver has lost a GPU: it no longer answers or has to be reset "
        f"({machine.driver.detail or 'GPU is lost'})"
        + (f"; the last Xid is {last.number}: {XIDS[last.number].meaning}" if last else ""),
        evidence=(
            seen(state, machine.driver.detail or "lost"),
            *((seen(logged, f"Xid {last.number} at {last.address}"),) if last else ()),
            *failures,
        ),
        remedies=(
            *(_first_steps(last.number, reset) if last else (_LOOK, reset)),
            Remedy(
                "If it happens again, check the card's power cables, its slot and its "
                "temperature, and contact its vendor."
            ),
        ),
    )


def _memory_errors(gpu: Gpu, errors: Known[int], failures: tuple[Evidence, ...]) -> Finding:
    times = (
        "one uncorrectable memory error"
        if errors.value == 1
        else (f"{errors.value} uncorrectable memory errors")
    )
    return CAUSE.finding(
        subject=MACHINE,
        message=f"GPU {gpu.number} ({gpu.name}) has had {times} since its driver was loaded; "
        "programs that used the faulty memory were ended",
        evidence=(seen(errors, times), *failures),
        remedies=(
            Remedy(
                "End all programs on the GPU and reset it, so that the faulty memory is disabled.",
                command_line("sudo nvidia-smi --gpu-reset -i", a_number(gpu.number)),
            ),
            Remedy(
                "Check whether spare memory is left.",
                command_line(
                    "nvidia-smi -q -d ECC,ROW_REMAPPER,PAGE_RETIREMENT -i", a_number(gpu.number)
                ),
            ),
            _LOOK,
        ),
        confidence="certain" if failures else "likely",
        # Alone, the count is only history: a failed operation shows a fault that matters now.
        severity="error" if failures else "warning",
        effect=None if failures else "none",
    )


def _only_in_probes(failures: tuple[Evidence, ...]) -> Finding:
    return CAUSE.finding(
        subject=MACHINE,
        message=f"an operation on the GPU failed with a hardware fault: {failures[0].text}",
        evidence=failures,
        remedies=(_LOOK, Remedy("Reset the GPU.", command_line("sudo nvidia-smi --gpu-reset"))),
    )


_XID = late(
    r"NVRM: Xid \([^)\n]{1,80}\): (?P<number>\d{1,3})\b|\bXid[ =:#]{1,3}(?P<bare>\d{1,3})\b"
)
_HARDWARE = late(
    # In a row of nvidia-smi's table. An old nvidia-smi with a newer driver prints it as well, in
    # the column for the load.
    r"(?<!CUDA Version: )(?<!npm )\bERR!(?=\s[^\n]{0,120}\|)"
    r"(?!\s{1,9}(?:Default|E\. (?:Process|Thread)|Prohibited))|\bSXid \(|fallen off the bus|GPU is lost|GPU_IS_LOST"
    r"|Unable to determine the device handle"
    r"|uncorrectable ECC|ECC_UNCORRECTABLE|ECCUncorrectable|[Uu]ncorrectable NVLink"
    r"|NVLINK_UNCORRECTABLE|HARDWARE_STACK_ERROR|cudaErrorHardwareStackError"
    r"|RC watchdog: GPU is probably locked|GPU requires reset|GPU Recovery Action[ :]{1,40}Reset"
    r"|NVML_ERROR_RESET_REQUIRED|Double Bit ECC|row remapping fail"
)
_RESET_FIRST = Remedy(
    "Reset the GPU, or restart the machine.", command_line("sudo nvidia-smi --gpu-reset -i 0")
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    numbers = [
        (int(match.groups["number"] or match.groups["bare"] or 0), match.line)
        for match in log.find(_XID)
    ]
    hard = [(number, line) for number, line in numbers if not follows_a_program(number)]
    stated = tuple(match.line for match in log.find(_HARDWARE))
    stated = stated or tuple(status.line for status in decided_by_code(log, CAUSE.slug))
    if hard or stated:
        confidence: Confidence = "certain"
    elif numbers and not log.failures:
        confidence = "possible"
    else:
        return
    chosen = hard or numbers
    lines = (*stated, *(line for _, line in chosen), *_failures_of_hardware(log))
    if confidence == "certain":
        # In a transcript, the kernel's log follows the failure of the program.
        first = min((*lines, *(status.line for status in log.statuses)))
        lines += gpu_ends_after(log, first)
    yield CAUSE.finding(
        subject=subject_of(log),
        message=_log_message(log, chosen, stated),
        evidence=log.evidence(*lines[:12]),
        remedies=(
            *_first_steps(chosen[0][0] if chosen else None, _RESET_FIRST),
            _LOOK,
            Remedy(
                "If it returns: check power, temperature and the slot of the card, try a "
                "production branch of the driver, and contact the vendor with the Xid."
            ),
        ),
        confidence=confidence,
        ask=None
        if confidence == "certain"
        else "Does it happen with other programs on this GPU, or with this program on another one? "
        "Only the first points to the hardware.",
    )


def _failures_of_hardware(log: Log) -> tuple[int, ...]:
    return tuple(f.line for f in log.failures if _HARDWARE.search(f.text))


def _log_message(log: Log, numbers: list[tuple[int, int]], stated: tuple[int, ...]) -> str:
    if numbers:
        number = numbers[0][0]
        row = XIDS.get(number)
        return f"the driver reports Xid {number} for the GPU" + (f": {row.meaning}" if row else "")
    return f"the GPU reports a hardware fault: {log.line(stated[0]).text.strip()[:140]}"
