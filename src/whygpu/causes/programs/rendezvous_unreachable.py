"""The processes of a training do not meet: MASTER_ADDR is not reached, or some are missing.

## Why it happens

Processes that train together first meet at a store, which the process with rank 0 opens at
MASTER_ADDR and MASTER_PORT. TensorFlow and JAX call it the coordination service. Only after that do
they set up NCCL. They do not meet if rank 0 has not started or has already failed, if a firewall
blocks the port, if MASTER_ADDR is a name or an address that the other machines cannot reach (such
as 127.0.1.1 from /etc/hosts), or if fewer processes were started than the world size says. The GPUs
and NCCL are not involved yet, so NCCL's variables change nothing.

## What it looks like

- `The client socket has failed to connect to [node1]:29500 (errno: 111 - Connection refused)`.
- `The client socket has timed out after 600000ms while trying to connect to (10.0.0.4, 29500)`.
- `Timed out after 1801 seconds waiting for clients. 1/2 clients joined`.
- `Timed out initializing process group in store based barrier`.
- `The IPv4 network addresses of (node1, 29500) cannot be retrieved`.

## Fix

First read the output of the process with rank 0: if it failed, its error is the cause. Then check
that every process has the same MASTER_ADDR, MASTER_PORT and world size, and that the other machines
reach that port. On one machine, `torchrun --standalone` needs neither of them.

## Fires on (log)

```
[W socket.cpp:697] [c10d] The client socket has failed to connect to [node7]:29500 (errno: 111 - Connection refused).
[E socket.cpp:720] [c10d] The client socket has timed out after 900s while trying to connect to (node7, 29500).
TimeoutError: The client socket has timed out after 900s while trying to connect to (node7, 29500).
```

```
torch.distributed.DistStoreError: Timed out after 1801 seconds waiting for clients. 1/2 clients joined.
```

```
RuntimeError: Timed out initializing process group in store based barrier on rank: 0, for key: store_based_barrier_key:1 (world_size=2, worker_count=4, timeout=0:30:00)
```

## Quiet on (log)

The first process was slow, and then the others reached it:

```
[W socket.cpp:697] [c10d] The client socket has failed to connect to [node7]:29500 (errno: 111 - Connection refused).
Epoch 1: loss 0.71
Epoch 2: loss 0.60
```

Another failure came first, and the others lost that process:

```
ValueError: unknown data set: imagenet-21k
[E socket.cpp:720] [c10d] The client socket has timed out after 900s while trying to connect to (node7, 29500).
TimeoutError: The client socket has timed out after 900s while trying to connect to (node7, 29500).
```

## Sources

- <https://docs.pytorch.org/docs/stable/distributed.html#tcp-initialization>
- <https://docs.pytorch.org/docs/stable/elastic/run.html>
- <https://docs.jax.dev/en/latest/multi_process.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.causes.evidence.rendezvous import Obstacle, unmet
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.log import Log
from whygpu.model.remedy import a_number, shell_script

CAUSE = cause("WG731", __name__, __doc__, severity="error", effect="broken")

_WHAT: dict[Obstacle, str] = {
    "refused": "nothing listens there: the process with rank 0 has not started, has ended, or "
    "has another address",
    "no-answer": "nobody answers there: a firewall, an address that this machine cannot reach, or "
    "a process with rank 0 that has not started",
    "unknown-name": "the name of that machine has no address here",
    "others-missing": "the others did not come: fewer processes were started than the world size "
    "says, or some failed or cannot reach the address",
}


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    found = unmet(log)
    if found is None:
        return
    port = f" (port {found.port})" if found.port else ""
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"the processes of this training did not meet at MASTER_ADDR{port}, which they do "
        f"before they use NCCL; {_WHAT[found.obstacle]}",
        evidence=log.evidence(*found.lines),
        remedies=(
            Remedy(
                "Read the output of every other process, that of rank 0 first: if one failed, its "
                "error is the cause."
            ),
            Remedy(
                "Check that every process has the same MASTER_ADDR, MASTER_PORT and world size.",
                shell_script("env | grep -E 'MASTER_|WORLD_SIZE|RANK'"),
            ),
            Remedy(
                "Check whether this machine reaches the port, while rank 0 runs.",
                shell_script('nc -vz "$MASTER_ADDR" ', a_number(found.port or "29500")),
            ),
            Remedy("With one machine only, use torchrun --standalone, which needs no address."),
        ),
        confidence="likely",
        ask="Is the process with rank 0 still running when this one gives up, and what did it "
        "print last?",
        kind_of="nccl-failure",
    )
