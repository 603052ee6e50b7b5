"""GPUs cannot exchange data: NCCL, RCCL or a collective operation fails.

## Why it happens

Processes that train together find each other over a network interface and then exchange data over
NVLink, PCIe, shared memory or the network. Each of these can fail: a firewall or the wrong
interface, too little /dev/shm in a container, two processes on one GPU, PCIe settings (IOMMU, ACS)
that break peer access, NCCL libraries of different versions. If one process dies or falls behind,
the others wait for it until a watchdog ends them.

## What it looks like

- `NCCL error in: ...ProcessGroupNCCL.cpp ..., unhandled system error` (or cuda error, internal
  error, invalid usage). NCCL prints details in lines marked `NCCL WARN`.
- `Watchdog caught collective operation timeout: WorkNCCL(...)`.
- `Duplicate GPU detected : rank 1 and rank 0 both on CUDA device ...`.
- TensorFlow: `Collective ops is aborted`, `is joining a group with size`.

## Fix

Run once with NCCL_DEBUG=INFO and read the first WARN line. Then use one GPU per process, set
NCCL_SOCKET_IFNAME to the right interface, or give the container more shared memory. To find out
which path is broken, set NCCL_P2P_DISABLE=1 or NCCL_IB_DISABLE=1. After a time-out, read the output
of the *other* processes.

## Fires on (log)

```
node1:220:431 [1] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 192.168.122.1<41239> failed : Software caused connection abort
torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, unhandled system error, NCCL version 2.18.1
ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.
```

```
[rank3]:[E ProcessGroupNCCL.cpp:563] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600410 milliseconds before timing out.
```

```
E tensorflow/core/common_runtime/ring_alg.cc:279] Aborting RingReduce with Internal: Collective ops is aborted by: Device /job:worker/replica:0/task:1/device:GPU:0 is joining a group with size 4, but that group has size 2 (group_key=1)
```

## Quiet on (log)

```
node1:220:431 [1] NCCL INFO Channel 00 : 0[1b000] -> 1[1c000] via P2P/IPC
node1:220:431 [1] NCCL INFO comm 0x7f7c rank 1 nranks 2 cudaDev 1 busId 1c000 - Init COMPLETE
Epoch 1/3
```

One process failed for another reason, and the others only waited for it.

```
[rank0]: Traceback (most recent call last):
[rank0]:   File "train.py", line 31, in <module>
[rank0]: FileNotFoundError: [Errno 2] No such file or directory: 'data/train.bin'
[rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, Timeout(ms)=600000) ran for 600100 milliseconds before timing out.
```

## Sources

- <https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html>
- <https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html>
- <https://docs.pytorch.org/docs/stable/distributed.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.causes.evidence.container_advice import more_shared_memory, runtime_in_log
from whygpu.causes.evidence.log_cuda_start import story_of
from whygpu.causes.evidence.log_subjects import gpu_ends_after, subject_of
from whygpu.causes.evidence.rendezvous import port_taken, unmet
from whygpu.model.cause import cause
from whygpu.model.derived import and_list
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.remedy import SetVariable, command_line

CAUSE = cause(
    "WG210",
    __name__,
    __doc__,
    severity="error",
    effect="broken",
    explains=("kernel-bug-illegal-access", "framework-crashes"),
)

_FAILED = late(
    r"(?:NCCL|RCCL|Nccl|nccl[A-Z]\w{2,30}\(\))(?: communicator| operation| library| backend| call)?[^\n]{0,200}?"
    r"(?:unhandled (?:system|cuda|hip) error|internal error|invalid usage|invalid argument"
    r"|remote process exited|remote error)"
    r"|nccl(?:SystemError|InternalError|InvalidUsage|InvalidArgument|RemoteError"
    r"|UnhandledCudaError)\b"
    r"|NCCL [Ee]rror(?: \d)?\b|\bNCCL error\b|NCCL operation [^\n]{0,120} failed"
    r"|NCCL communicator was aborted"
    r"|NCCL communication aborted"
    r"|Duplicate GPU detected"
    r"|is joining a group with size|[Cc]ollective ops? is aborted"
    r"|No OpKernel was registered to support Op 'Nccl\w{3,20}'"
    r"|[Dd]istributed package doesn'?t have NCCL|Backend nccl is not available"
    r"|NCCL is not (?:available|compiled|built)"
    r"|NCCL library (?:was )?not found|undefined symbol: nccl\w{3,40}"
    r"|[Ff]ailed to (?:initiali[sz]e|init|load|set up) (?:the )?NCCL|NCCL initiali[sz]ation failed"
    r"|ncclCommInit\w{0,12} failed"
    r"|Connect(?:ion)? to [^\n]{0,80} failed[^\n]{0,60}NCCL"
    r"|connectFullMesh failed|Dist(?:Network|Store)Error"
    r"|Horovod has been shut down|setting up NCCL communicator"
    r"|gloo[/\\]transport[^\n]{0,120}(?:[Cc]onnect|closed|refused|timed out)"
)
_WARNED = late(r"(?:NCCL|RCCL) WARN (?P<words>[^\n]{3,300})")
_WAITED = late(
    r"Watchdog caught collective operation timeout|[Cc]ollective (?:operation )?timeout"
    r"|WorkNCCL\([^\n]{0,300}timeout"
    r"|Some NCCL operations have failed or timed out|NCCL watchdog thread terminated"
    r"|Timeout at NCCL work|watchdog got stuck for \d+ seconds|due to ProcessGroupNCCL watchdog hang"
    r"|RendezvousTimeoutError|rendezvous (?:timed out|timeout)[^\n]{0,40}NCCL"
    r"|This thread has been waiting for \W?\d+ms for and may be stuck"
    r"|submitted to be reduced, gathered or broadcasted by subset of ranks"
    r"|Stuck waiting for all-?reduce|AllReduce[^\n]{0,60}rendezvous[^\n]{0,60}(?:timed|stuck)"
)
_OF_A_LOST_PEER = late(
    r"aborted|shut ?down|remote (?:process exited|error)|timed? ?out|[Cc]onnection (?:closed|reset)"
)
"""What the other processes print if one of them has ended."""
_CONSEQUENCE = late(r"unhandled (?:cuda|hip) error|UnhandledCudaError")
_HARMLESS_WARNING = late(
    r"NET/Plugin|MNNVL|NCCL_\w+ set by environment|Could not enable P2P|Missing \"|cudaHostRegister"
    r"|Failed to open libibverbs|ibv_|No plugin found|libnccl-net|NUMA|Setting affinity"
)
_ABOUT_NCCL = late(
    r"nccl|rccl|collective|c10d|ProcessGroup|distributed|DistBackend|rendezvous", re.I
)
_DEBUG = Remedy(
    "Make NCCL print its warnings, and read the first WARN.", SetVariable("NCCL_DEBUG", "INFO")
)


def _without_path(first: str, *others: str) -> Remedy:
    """Turn off the paths between GPUs one by one. The path in question comes first."""
    return Remedy(
        "Find out which path between the GPUs is broken: set one variable at a time, this one "
        f"first, then {and_list(others)}."
        if others
        else "Check whether it works without that path between the GPUs, which is then slower.",
        SetVariable(first, "1"),
    )


_LAST_ERROR = late(r"Last error: {0,4}(?:\n {0,8})?(?P<words>[^\n]{3,300})")
"""What NCCL says about the failure itself, as PyTorch passes it on."""
_EXPLAINS_THE_CODE = late(
    r"(?i)System call \([^)\n]{0,60}\)(?: or external library call)? failed(?: or device error)?"
)
"""NCCL's text for the code ncclSystemError, whatever has failed: it names sockets as an example."""
_SHARED = late(r"shm|shared memory|No space left", re.I)
_NO_SHARED_MEMORY = "the shared memory (/dev/shm) is too small or not accessible"
_REASONS: tuple[tuple[re.Pattern[str], str, tuple[Remedy, ...]], ...] = (
    (
        late(r"Duplicate GPU|invalid usage|InvalidUsage"),
        "two processes use the same GPU, or NCCL is called in a way that it does not allow",
        (
            Remedy(
                "Give each process its own GPU, torch.cuda.set_device(local_rank), and start no "
                "more processes than GPUs."
            ),
            _DEBUG,
        ),
    ),
    (
        late(r"[Cc]onnect|socket|bind|interface|Net\b|Connection|timed out|ib_|ibv|vendor err"),
        "the processes cannot reach each other over the network",
        (
            _DEBUG,
            Remedy(
                "Find the network interface that connects the machines, set NCCL_SOCKET_IFNAME to "
                "its name, and check whether a firewall blocks the connection.",
                command_line("ip -brief address"),
            ),
            _without_path("NCCL_IB_DISABLE"),
        ),
    ),
    (
        late(r"joining a group with size"),
        "two groups of GPUs of different size use one collective group in the same process",
        (Remedy("Use one distribution strategy per process; restart before using other GPUs."),),
    ),
    (
        late(r"doesn'?t have NCCL|not available|No OpKernel"),
        "this build has no NCCL (Windows and macOS have none)",
        (
            Remedy(
                "Use another backend: 'gloo' in PyTorch, "
                "tf.distribute.HierarchicalCopyAllReduce() in TensorFlow."
            ),
        ),
    ),
)
_SYSTEM_ERROR = late(r"unhandled system error|ncclSystemError")
_MOST_LINES = 6


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    failed = list(log.find(_FAILED))
    waited = list(log.find(_WAITED))
    warned = [m for m in log.find(_WARNED) if not _HARMLESS_WARNING.search(m.text)]
    if not failed and not waited and not (warned and log.failures):
        return
    if port_taken(log) is not None or unmet(log) is not None:
        return
    first = min(match.line for match in (*failed, *waited, *warned))
    followed = all(_OF_A_LOST_PEER.search(match.text) for match in failed)
    if followed and _unrelated_failure_before(log, first):
        return
    consequence = bool(failed) and not warned and all(_CONSEQUENCE.search(m.text) for m in failed)
    last = list(log.find(_LAST_ERROR))
    lines = [*_chosen(warned, failed, waited), *(match.line + _below(match) for match in last[:1])]
    ends = gpu_ends_after(log, first)
    what, remedies = _reason(log, warned, failed, waited, last)
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"communication between GPUs failed: {what}",
        evidence=log.evidence(*lines, *ends[:_MOST_LINES]),
        remedies=remedies,
        confidence="possible" if consequence and _other_fault(log) else "likely",
        ask="What is the first `NCCL WARN` line with NCCL_DEBUG=INFO, and are all processes still "
        "running at that point?",
    )


def _below(match: Match) -> int:
    """How many lines below its heading the words are."""
    return 0 if (match.groups["words"] or "") in match.text else 1


def _unrelated_failure_before(log: Log, line: int) -> bool:
    """The processes waited for one that failed for another reason."""
    return any(
        failure.line < line and failure.kind != "exit" and not _ABOUT_NCCL.search(failure.text)
        for failure in log.failures
    )


def _other_fault(log: Log) -> bool:
    """Any other CUDA error; NCCL passes on the errors it gets."""
    return any(status.api != "nccl" for status in log.statuses)


def _chosen(*kinds: Sequence[Match]) -> list[int]:
    return [match.line for kind in kinds for match in (*kind[:2], *kind[2:][-1:])]


def _reason(
    log: Log,
    warned: Sequence[Match],
    failed: Sequence[Match],
    waited: Sequence[Match],
    last: Sequence[Match],
) -> tuple[str, tuple[Remedy, ...]]:
    stated = [match.groups["words"] or "" for match in last]
    texts = "\n".join((*stated[:2], *(match.text for match in (*warned[:3], *failed[:5]))))
    texts = _EXPLAINS_THE_CODE.sub("", texts)
    shared = more_shared_memory(runtime_in_log(log))
    if _SHARED.search(texts):
        return _NO_SHARED_MEMORY, (*shared, _DEBUG, _without_path("NCCL_SHM_DISABLE"))
    for pattern, what, remedies in _REASONS:
        if texts and pattern.search(texts):
            return what, remedies
    if waited and not failed:
        return (
            "a collective operation waited for a process that did not arrive, until the watchdog "
            "ended it",
            (
                Remedy("Look for the first error in the output of every other process."),
                Remedy("Check that all processes make the same calls in the same order."),
                _DEBUG,
            ),
        )
    words = next(
        (words for words in (*stated, *(m.groups["words"] for m in warned)) if words), None
    )
    # A container has 64 MiB of shared memory unless it was started with more.
    in_container = _SYSTEM_ERROR.search(texts) and story_of(log).place == "container"
    paths = _without_path("NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE")
    return (
        f"NCCL says: {words.strip()}" if words else "NCCL failed",
        (_DEBUG, *(shared if in_container else ()), paths),
    )
