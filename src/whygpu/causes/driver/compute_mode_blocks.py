"""The GPU's compute mode does not let this program use the GPU.

## Why it happens

An administrator can set a GPU to accept no CUDA program at all (prohibited) or only one process at
a time (exclusive). Clusters use both. In exclusive mode the second process gets an error even if
memory is free. With NVIDIA's MPS server, exclusive mode is correct: the server is the one process,
and programs use the GPU through it.

## What it looks like

- `CUDA_ERROR_DEVICE_UNAVAILABLE`, "all CUDA-capable devices are busy or unavailable" (46).
- nvidia-smi lists the GPU as usual; its mode is in the column "Compute M.".

## Fix

Set the mode to default, wait for the other process, or choose another GPU with
CUDA_VISIBLE_DEVICES.

## Fires on (machine)

```toml
[driver.gpus.0]
compute_mode = "prohibited"
```

One process at a time, and another process uses the GPU.

```toml
[driver.gpus.0]
compute_mode = "exclusive"
processes = [{pid = 4711, name = "python", memory_bytes = 2000000000}]
```

## Quiet on (machine)

Exclusive, and no process uses it, or only MPS does.

```toml
[driver.gpus.0]
compute_mode = "exclusive"
```

```toml
[driver.gpus.0]
compute_mode = "exclusive"
processes = [{pid = 99, name = "nvidia-cuda-mps-server", memory_bytes = 30000000}]
```

## Cannot tell on (machine)

```toml
[driver.gpus.0]
compute_mode = {unknown = "NVML: Unknown Error"}
```

## Fires on (log)

nvidia-smi shows the mode in its table.

```
| 23%   31C    P8    17W / 250W |   8120MiB / 11178MiB |      0%   E. Process |
RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable
```

```
index, compute_mode
0, Exclusive_Process
2020-02-11 10:10:10.000001: E tensorflow/stream_executor/cuda/cuda_driver.cc:1032] failed to create context: CUDA_ERROR_DEVICE_UNAVAILABLE: all CUDA-capable devices are busy or unavailable
```

## Quiet on (log)

```
RuntimeError: CUDA error: no CUDA-capable device is detected
```

## Sources

- <https://docs.nvidia.com/deploy/mps/index.html>
- <https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-modes>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.driver_state import CONSEQUENCES, selected_gpus
from whygpu.causes.evidence.log_cpu_builds import misses_gpu
from whygpu.causes.evidence.log_cuda_start import (
    INVALID_DEVICE,
    MAKES_CONTEXT,
    failed_at,
    lines_of,
    named,
)
from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.driver import Gpu, GpuProcess
from whygpu.model.finding import MACHINE, Confidence, Evidence, Finding, Gap, Remedy, Severity, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.observed import Known, Unknown, need
from whygpu.model.remedy import a_number, command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.tables.desktop_programs import DESKTOP_PROGRAMS

CAUSE = cause("WG109", __name__, __doc__, severity="error", effect="cpu", explains=CONSEQUENCES)

_SHARES = ("nvidia-cuda-mps-server", "nvidia-cuda-mps-control")


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    need(nvidia_gpu(machine))
    gpus = selected_gpus(machine)
    blocked: list[tuple[Gpu, tuple[GpuProcess, ...]]] = []
    for gpu in gpus:
        mode = gpu.compute_mode
        if isinstance(mode, Unknown):
            yield Gap(f"the compute mode of GPU {gpu.number} ({gpu.name}): {mode.reason}")
        elif isinstance(mode, Known) and mode.value == "prohibited":
            blocked.append((gpu, ()))
        elif isinstance(mode, Known) and mode.value == "exclusive":
            if isinstance(gpu.processes, Unknown):
                yield Gap(
                    f"which processes use GPU {gpu.number}, which is exclusive: "
                    f"{gpu.processes.reason}"
                )
            elif owners := _owners(gpu):
                blocked.append((gpu, owners))
    # One usable GPU is enough: the others then get only a warning.
    severity: Severity = "error" if len(blocked) == len(gpus) else "warning"
    for gpu, owners in blocked:
        yield _finding(gpu, owners, severity)


def _owners(gpu: Gpu) -> tuple[GpuProcess, ...]:
    """Processes that hold an exclusive GPU; none if MPS shares it."""
    processes = gpu.processes.value if isinstance(gpu.processes, Known) else ()
    names = {process.pid: _name(process) for process in processes}
    if any(name in _SHARES for name in names.values()):
        return ()
    # A desktop has no CUDA context, and exclusive mode does not count it.
    return tuple(process for process in processes if names[process.pid] not in DESKTOP_PROGRAMS)


def _name(process: GpuProcess) -> str:
    return process.name.value if isinstance(process.name, Known) else "a process"


def _finding(gpu: Gpu, owners: tuple[GpuProcess, ...], severity: Severity) -> Finding:
    confidence: Confidence = "certain"
    if owners:
        who = ", ".join(f"{_name(process)} (pid {process.pid})" for process in owners)
        state = f"accepts one process at a time (exclusive), and {who} uses it"
        # The process may only draw, or end before a program starts.
        confidence = "likely"
    else:
        state = "accepts no CUDA program (prohibited)"
    return CAUSE.finding(
        subject=MACHINE,
        message=f"GPU {gpu.number} ({gpu.name}) {state}; its compute mode should be default",
        evidence=(
            seen(gpu.compute_mode, f"compute mode {need(gpu.compute_mode)}"),
            *(
                Evidence("machine", f"pid {process.pid}", f"{_name(process)} uses the GPU")
                for process in owners
            ),
        ),
        remedies=(
            Remedy(
                "Wait for the other process, or choose another GPU."
                if owners
                else "Choose another GPU.",
                command_line("nvidia-smi"),
            ),
            Remedy(
                "Or allow all processes (until the next restart).",
                command_line("sudo nvidia-smi -i", a_number(gpu.number), "-c DEFAULT"),
            ),
        ),
        confidence=confidence,
        severity=severity,
    )


_UNAVAILABLE = (
    "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "cudaErrorDevicesUnavailable",
    "CUDA_ERROR_46",
    "cudaError46",
)
_EXCLUSIVE = late(r"\b(?:E\. ?Process|Exclusive_Process|EXCLUSIVE_PROCESS|Prohibited)\b")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    # Up to CUDA 10, the driver reports an exclusive GPU in use as an invalid device.
    statuses = (
        *log.status_named(*_UNAVAILABLE),
        *(status for status in named(log, INVALID_DEVICE) if status.call in MAKES_CONTEXT),
    )
    mode = log.first(_EXCLUSIVE)
    if not statuses:
        unused = log.without_gpu() or misses_gpu(log)
        if mode is not None and "Prohibited" in mode.text and unused:
            yield _prohibited(log, mode)
        return
    lines = (*lines_of(statuses), *((mode.line,) if mode else ()))
    yield CAUSE.finding(
        subject=subject_of(log),
        message="the driver does not let this process use the GPU (busy or unavailable): another "
        "process holds it exclusively, its compute mode forbids it, or the GPU is in a bad state",
        evidence=log.evidence(*lines),
        remedies=(
            Remedy(
                "Check the compute mode and which processes use the GPU.",
                shell_script("nvidia-smi --query-gpu=index,compute_mode --format=csv; nvidia-smi"),
            ),
            Remedy(
                "Allow all processes (until the next restart).",
                command_line("sudo nvidia-smi -c DEFAULT"),
            ),
            Remedy(
                "If the mode is Default and no process uses it, reset the GPU or restart.",
                command_line("sudo nvidia-smi --gpu-reset -i 0"),
            ),
        ),
        confidence="certain" if mode else "possible",
        effect="broken" if failed_at(log, lines) else "cpu",
        ask=None
        if mode
        else "What is the compute mode: `nvidia-smi --query-gpu=compute_mode --format=csv`?",
    )


def _prohibited(log: Log, mode: Match) -> Finding:
    """The driver lists the GPU, and a program does not see it."""
    reports = log.without_gpu()
    return CAUSE.finding(
        subject=subject_of(log),
        message="the GPU's compute mode is Prohibited, so no process can use CUDA on it; a virtual "
        "GPU whose profile has no CUDA shows the same mode",
        evidence=log.evidence(mode.line, *(report.line for report in reports[:2])),
        remedies=(
            Remedy(
                "Allow all processes (until the next restart).",
                command_line("sudo nvidia-smi -c DEFAULT"),
            ),
            Remedy("For a virtual GPU, ask for a profile with CUDA (NVIDIA's series Q or C)."),
        ),
        confidence="likely",
    )
