"""The computer's main memory, or its shared memory, is too small for the framework.

## Why it happens

Importing a framework with CUDA needs one to several gigabytes of main memory. If a container, a
scheduler or a small machine allows less, the kernel ends the process with SIGKILL, and the process
cannot write a message.

Shared memory is another limit: PyTorch's data-loader workers pass their batches through /dev/shm,
and Docker gives a container only 64 MB of it.

## What it looks like

- `Killed`, exit status 137, and "Out of memory: Killed process" in the kernel log.
- `DataLoader worker (pid ...) is killed by signal: Bus error. It is possible that dataloader's
  workers are out of shared memory`.
- `Cannot allocate memory`, `std::bad_alloc`, `MemoryError: Unable to allocate`,
  `DefaultCPUAllocator: not enough memory`, "OOM when allocating tensor ... by allocator cpu".
- `could not allocate pinned host memory`: the GPU reads pinned memory directly, but it is main
  memory.
- Windows: `The paging file is too small for this operation to complete` (WinError 1455), often
  while many worker processes load the same libraries.

## Fix

Give the process more memory. Start containers with `--shm-size=8g` or `--ipc=host`.

## Fires on (machine)

A container with Docker's default for shared memory.

```toml
[system.container]
runtime = "docker"
driver_mounts = ["/dev/nvidia0"]
[system.memory]
shared_bytes = 67108864
```

A probe that the kernel ended because memory ran out.

```toml
only = ["tensorflow"]
[system.memory]
total_bytes = 2147483648
available_bytes = 1073741824
[probes.tensorflow]
ended = "signal"
how = "SIGKILL"
stage = "import"
```

A probe that whygpu itself ended, before the machine ran out of memory.

```toml
only = ["torch"]
[probes.torch]
ended = "over-limit"
how = "more than 1.5 GiB of main memory"
stage = "import"
```

## Quiet on (machine)

A small /dev/shm matters only for PyTorch.

```toml
only = ["jax"]
[system.container]
runtime = "docker"
driver_mounts = ["/dev/nvidia0"]
[system.memory]
shared_bytes = 67108864
```

## Cannot tell on (machine)

```toml
only = ["tensorflow"]
[system.memory]
available_bytes = {unknown = "/proc/meminfo: permission denied"}
[probes.tensorflow]
ended = "signal"
how = "SIGKILL"
stage = "import"
```

## Fires on (log)

```
Epoch 3:  41%|####      | 512/1250 [02:11<03:09,  3.89it/s]
Killed
```

```
RuntimeError: DataLoader worker (pid 211) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.
```

```
OSError: [WinError 1455] The paging file is too small for this operation to complete. Error loading "C:\\envs\\t\\lib\\site-packages\\torch\\lib\\caffe2_detectron_ops_gpu.dll" or one of its dependencies.
```

```
numpy.core._exceptions.MemoryError: Unable to allocate 37.3 GiB for an array with shape (50000, 100000) and data type float64
```

## Quiet on (log)

The GPU's memory ran out first; the launcher then ends the other workers.

```
torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 15.78 GiB total capacity; 14.20 GiB already allocated; 1.10 GiB free; 14.30 GiB reserved in total by PyTorch)
ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 1 (pid: 4012) of binary: /usr/bin/python3
```

## Sources

- <https://docs.docker.com/engine/containers/run/>
- <https://docs.pytorch.org/docs/stable/multiprocessing.html>
- <https://docs.kernel.org/admin-guide/mm/concepts.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from whygpu.causes.evidence.container_advice import (
    more_shared_memory,
    runtime_in_log,
    runtime_of,
)
from whygpu.causes.evidence.log_subjects import gpu_ends_after, subject_of
from whygpu.causes.evidence.memory_remedies import for_leaks
from whygpu.causes.evidence.probe_ends import own_probes
from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Allocation, Log
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.probe import Probe
from whygpu.model.remedy import SetVariable, command_line, shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.model.units import GIB, size_text
from whygpu.tables.out_of_memory import PAGING_FILE

CAUSE = cause(
    "WG502",
    __name__,
    __doc__,
    severity="warning",
    effect="none",
    explains=("framework-crashes",),
)

_LITTLE = 4 * GIB
"""Frameworks with CUDA libraries need 1 to 3 GiB until their first operation is done."""

_KILLED = ("signal", "SIGKILL")

_MORE = Remedy(
    "Give it more memory: end other programs, raise the container's limit (docker run --memory; "
    "in Kubernetes, resources.limits.memory), or request more from the scheduler (srun --mem)."
)

_BY_SLURM = late(r"\bslurm(?:stepd|d)\b[^\n]{0,80}error|\bsrun: error|StepId=\d")
_OF_SLURM = (
    Remedy(
        "The job reached the memory that it asked for. See how much it used (MaxRSS), and ask for "
        "more: #SBATCH --mem=64G, or --mem-per-cpu.",
        command_line("sacct -j JOBID --format=JobID,ReqMem,MaxRSS,State"),
    ),
)
_SHARED_FLOOR = 64 << 20
"""Docker's default. Real programs pass single batches that are larger."""

_ENDED_BY_KERNEL = late(
    r"^(?:\S{0,200}: line \d+: +\d+ )?Killed\b(?! by)|\bKilled(?:: 9)?$|[Kk]illed by signal:? (?:Killed|9)\b"
    r"|exit(?:ed with)?[ _-]?(?:code|status):? {0,2}(?:137|-9)\b|\b(?:return(?:ed)?|error) code(?::| =)? (?:137"
    r"|-9)\b"
    r"|exitcode {0,4}: {0,2}-9\b|died with <Signals\.SIGKILL|\(signal:? ?9|signal 9 \(SIGKILL\)"
    r"|Signal 9 \(SIGKILL\)|SIGKILL received|[Tt]erminated by signal 9\b",
    re.M,
)
_RAM_USED_UP = late(r"crashed after using all (?:the )?available RAM")
"""A hosted notebook prints this."""
_LAUNCHER = late(r"(?:ChildFailed|CalledProcess|ProcessExited|ProcessRaised)(?:Error|Exception)")
"""A launcher raises this when a process that it started has ended."""
_SHARED = late(r"shared memory|\b[Bb]us\b|/dev/shm|/torch_\d|SIGBUS")
_OF_NCCL = late(r"\bNCCL\b|/nccl-|\bnccl-shm")
_BUS_ERROR = late(r"[Bb]us error|SIGBUS")
_WORKERS = late(r"DataLoader|/dev/shm|shared memory|shm")
_PAGING = late(PAGING_FILE)
_PINNED = late(r"pinned host memory|on host|pin_memory")
_PIN_FRAME = late(
    r"pin_memory\w{0,12}\.py|in _pin_memory_loop|\.pin_memory\(|in allocate_cpu_cache\b"
)
_HINTS = late(r"exceeds 10% of (?:free )?system memory")
_TINY = 1 << 20
_MOST_LINES = 6


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    yield from _shared(machine)
    for _, probe in own_probes(machine):
        if isinstance(probe, Known) and (probe.value.ended, probe.value.how) == _KILLED:
            yield from _killed(machine, probe.value)
        elif isinstance(probe, Known) and probe.value.ended == "over-limit":
            yield _stopped(probe.value)


def _stopped(probe: Probe) -> Finding:
    """The limit is the memory that was available when the probe started."""
    name = display_name(probe.name)
    return CAUSE.finding(
        subject=probe.name,
        message=f"{name} took {probe.how} (at: {probe.stage}), all that is available on this "
        "machine; whygpu ended it so that other programs keep their memory",
        evidence=(Evidence("probe", f"{name} probe", f"took {probe.how} at {probe.stage}"),),
        remedies=(_MORE,),
        severity="error",
    )


def _killed(machine: Snapshot, probe: Probe) -> Iterator[Finding | Gap]:
    name = display_name(probe.name)
    available = machine.system.memory.available_bytes
    if isinstance(available, Unknown):
        yield Gap(f"whether {name} was killed because memory ran out: {available.reason}")
    elif isinstance(available, Known) and available.value < _LITTLE:
        yield CAUSE.finding(
            subject=probe.name,
            message=f"{name} was killed (SIGKILL, at: {probe.stage}) on a machine that had "
            f"{size_text(available.value)} of memory left; it needs up to {size_text(_LITTLE)}",
            evidence=(
                Evidence("probe", f"{name} probe", f"ended by {probe.how} at {probe.stage}"),
                seen(available, f"{size_text(available.value)} available"),
            ),
            remedies=(_IN_KERNEL_LOG, _MORE),
            confidence="likely",
            severity="error",
            effect="broken",
        )


def _shared(machine: Snapshot) -> Iterator[Finding | Gap]:
    """Only relevant for training: on a machine without a GPU this finding would be noise."""
    torch = machine.framework("torch")
    if isinstance(torch, Absent) or isinstance(nvidia_gpu(machine), Absent):
        return
    size = machine.system.memory.shared_bytes
    if isinstance(size, Unknown):
        yield Gap(f"the size of /dev/shm: {size.reason}")
    elif isinstance(size, Known) and size.value <= _SHARED_FLOOR:
        yield CAUSE.finding(
            subject="torch",
            message=f"/dev/shm has {size_text(size.value)}; PyTorch's data-loader workers pass "
            "their batches through it and crash with a bus error when it is full",
            evidence=(seen(size, size_text(size.value)),),
            remedies=(
                *more_shared_memory(runtime_of(machine)),
                Remedy("Or load the data in the main process: num_workers=0."),
            ),
            confidence="likely",
        )


_FEWER = Remedy(
    "Use fewer worker processes, smaller batches or a smaller model, and read the data in parts "
    "instead of all at once."
)
_IN_KERNEL_LOG = Remedy(
    "Check whether the kernel log reports it.",
    shell_script("sudo dmesg | grep -i 'out of memory'"),
)
_FOR_MEMORY = (
    _FEWER,
    Remedy(
        "Give it more memory: end other programs, add swap, raise the container's limit (docker "
        "run --memory; in Kubernetes, resources.limits.memory), or request more from the scheduler "
        "(srun --mem)."
    ),
)
_FOR_PAGING = (
    Remedy(
        "Make the paging file larger (System > Advanced > Performance > Virtual memory), on a "
        "drive with enough space, and restart."
    ),
    _FEWER,
)


_WITHOUT_SHARED = Remedy(
    "Or let NCCL do without shared memory, which is slower.", SetVariable("NCCL_SHM_DISABLE", "1")
)
_FEWER_WORKERS = Remedy(
    "Or load the data with fewer workers; num_workers=0 needs no shared memory."
)


def _for_shared(log: Log, *, of_nccl: bool = False) -> tuple[Remedy, ...]:
    return (
        Remedy("Check its size.", command_line("df -h /dev/shm")),
        *more_shared_memory(runtime_in_log(log)),
        _WITHOUT_SHARED if of_nccl else _FEWER_WORKERS,
    )


class _Story(NamedTuple):
    what: str
    remedies: tuple[Remedy, ...] = _FOR_MEMORY


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    refused = [a for a in log.allocations if _in_main_memory(log, a) and not _tiny(a)]
    pinned = _refused_while_pinning(log)
    if refused or pinned:
        yield _refused(log, refused, pinned)
        return
    bus = log.first(_BUS_ERROR)
    if bus is not None and log.says(_WORKERS):
        story = _Story(
            "a process crashed with a bus error: its shared memory (/dev/shm) is full",
            _for_shared(log),
        )
        yield _log_finding(log, story, [bus.line])
        return
    used_up = [match.line for match in log.find(_RAM_USED_UP)]
    if used_up:
        yield _log_finding(log, _Story("the main memory, not the GPU's, is used up"), used_up)
        return
    ends = [match.line for match in log.find(_ENDED_BY_KERNEL)]
    if ends and not _failed_before(log, ends[0]):
        hints = [match.line for match in log.find(_HINTS)]
        yield _log_finding(log, _killed_story(log), [*ends, *hints], certain=_watched(log))


def _in_main_memory(log: Log, allocation: Allocation) -> bool:
    """XLA prints the same for the GPU's memory; a watched run shows which memory it was."""
    return allocation.place != "gpu" or (_watched(log) and allocation.of == "xla")


def _watched(log: Log) -> bool:
    return log.memory is not None and log.memory.place == "host"


def _killed_story(log: Log) -> _Story:
    if _watched(log):
        return _with_course(
            log,
            _Story("the kernel ended one of its processes, because the main memory is used up"),
        )
    return _Story(
        "the process was killed from outside and wrote no message; the kernel does this when the "
        "main memory is used up"
    )


def _with_course(log: Log, story: _Story) -> _Story:
    """Add the reason that watching the run has shown."""
    seen = log.memory
    if seen is None or seen.place != "host" or seen.reason == "unknown":
        return story
    if seen.reason == "leak":
        return _Story(f"{story.what}; {seen.because}", (*for_leaks(log), *story.remedies))
    return story._replace(what=f"{story.what}; {seen.because}")


def _tiny(allocation: Allocation) -> bool:
    """Pinned memory of a few bytes fails when CUDA as a whole no longer works."""
    size = allocation.requested
    return not allocation.final and size is not None and size < _TINY


def _refused_while_pinning(log: Log) -> list[int]:
    """Page-locked memory is main memory, but CUDA refuses it with the message for GPU memory."""
    if not log.says(_PIN_FRAME):
        return []
    return [a.line for a in log.allocations if a.place == "gpu" and a.requested is None]


def _failed_before(log: Log, line: int) -> bool:
    """Something else failed earlier; then the launcher only ended the remaining processes."""
    return any(
        failure.line < line
        and failure.kind in ("exception", "fatal", "signal")
        and not _ENDED_BY_KERNEL.search(failure.text.partition("\n")[0])
        and not _LAUNCHER.match(failure.text)
        for failure in log.failures
    ) or any(a.place == "gpu" and a.final for a in log.allocations)


def _refused(log: Log, refused: Sequence[Allocation], pinned: Sequence[int]) -> Finding:
    lines = [*(a.line for a in refused), *pinned]
    final = bool(pinned) or any(a.final for a in refused)
    # Pinned memory is optional: if the GPU's own memory runs out as well, that is the reason.
    aside = not final and any(a.place == "gpu" and a.final for a in log.allocations)
    return _log_finding(
        log,
        _story(log, refused, pinned),
        lines,
        certain=not aside,
        survived=aside or not (final or log.failures),
    )


def _story(log: Log, refused: Sequence[Allocation], pinned: Sequence[int]) -> _Story:
    lines = [*(a.line for a in refused), *pinned][:_MOST_LINES]
    texts = "\n".join(log.line(line).text for line in lines)
    size = max((a.requested for a in refused if a.requested), default=None)
    asked = f" ({size_text(size)} were requested)" if size else ""
    if _PAGING.search(texts):
        return _Story(
            "Windows has no virtual memory left: its paging file is too small", _FOR_PAGING
        )
    if any(a.place == "shared-memory" for a in refused) or _SHARED.search(texts):
        if _OF_NCCL.search(texts):
            return _Story(
                "the shared memory (/dev/shm) through which NCCL connects the GPUs is full",
                _for_shared(log, of_nccl=True),
            )
        return _Story(
            "the shared memory (/dev/shm) through which worker processes pass data is full",
            _for_shared(log),
        )
    if pinned or _PINNED.search(texts):
        return _Story(f"the main memory, which pinned memory is taken from, is used up{asked}")
    return _with_course(log, _Story(f"the main memory, not the GPU's, is used up{asked}"))


_ASK_KERNEL = "Does `sudo dmesg | grep -i 'out of memory'` name the process?"
_ASK_HOW_MUCH = {
    "windows": "How much memory does Task Manager show in use just before it ends?",
    "macos": "How much memory does Activity Monitor show in use just before it ends?",
}


def _log_finding(
    log: Log,
    story: _Story,
    lines: Sequence[int],
    *,
    certain: bool = True,
    survived: bool = False,
) -> Finding:
    ends = () if survived else gpu_ends_after(log, min(lines))
    return CAUSE.finding(
        subject=subject_of(log),
        message=story.what,
        evidence=log.evidence(*lines[:_MOST_LINES], *lines[-_MOST_LINES:], *ends[:_MOST_LINES]),
        remedies=(*_OF_SLURM, *story.remedies)
        if _FOR_MEMORY[-1] in story.remedies and log.says(_BY_SLURM)
        else (_IN_KERNEL_LOG, *story.remedies)
        if _FOR_MEMORY[-1] in story.remedies and log.platform not in ("windows", "macos")
        else story.remedies,
        confidence="certain" if certain else "likely",
        severity="warning" if survived else "error",
        effect="none" if survived else "broken",
        ask=None if certain else _ASK_HOW_MUCH.get(log.platform, _ASK_KERNEL),
    )
