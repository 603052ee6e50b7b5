"""The port where the processes of a training meet is already used by another process.

## Why it happens

Processes that train together meet at one network port of the first machine: 29500 for PyTorch
unless MASTER_PORT says otherwise, the address in TF_CONFIG for TensorFlow, the address of the
coordinator for JAX. Only one process can listen on a port. Usually an earlier run has not ended,
because a child process survived Ctrl-C, or a second job on the machine uses the same default port.
The GPUs and NCCL are not involved: the training fails before it uses them.

## What it looks like

- `The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use)`.
- `DistNetworkError: ... code: -98, name: EADDRINUSE, message: address already in use`.
- `RuntimeError: Address already in use` below `TCPStore(`.
- Accelerate: `Tried to launch distributed communication on port 29500, but another process is
  utilizing it`.
- TensorFlow: `UnknownError: Could not start gRPC server`.

## Fix

Find the process that listens on the port and end it, or give this run a port of its own
(`torchrun --master-port 29501`, `accelerate launch --main_process_port 29501`). `torchrun
--standalone` chooses a free port itself.

## Fires on (log)

```
[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
[E socket.cpp:462] [c10d] The server socket has failed to listen on any local network address.
RuntimeError: The server socket has failed to listen on any local network address. The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
```

```
    store = TCPStore(master_addr, master_port, world_size, start_daemon, timeout)
RuntimeError: Address already in use
```

```
ConnectionError: Tried to launch distributed communication on port `29500`, but another process is utilizing it. Please specify a different port and rerun your script.
```

```
E1018 10:01:22.113233998    4211 server_chttp2.cc:40] {"description":"Unable to configure socket","syscall":"bind","os_error":"Address already in use"}
tensorflow.python.framework.errors_impl.UnknownError: Could not start gRPC server
```

## Quiet on (log)

A web server has no meeting of training processes.

```
OSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use
```

The message is a warning, and another port was taken.

```
[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).
Epoch 1: loss 0.71
Epoch 2: loss 0.60
```

## Sources

- <https://docs.pytorch.org/docs/stable/elastic/run.html>
- <https://huggingface.co/docs/accelerate/package_reference/cli>
- <https://www.tensorflow.org/guide/distributed_training>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.causes.evidence.rendezvous import port_taken
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.log import Log
from whygpu.model.remedy import a_number, shell_script

CAUSE = cause("WG730", __name__, __doc__, severity="error", effect="broken")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    taken = port_taken(log)
    if taken is None:
        return
    named = f" ({taken.port})" if taken.port else ""
    look = shell_script("ss -ltnp 'sport = :", a_number(taken.port), "'") if taken.port else None
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"the port{named} where the processes of this training meet is used by another "
        "process: an earlier run that has not ended, or a second job with the same port",
        evidence=log.evidence(*taken.lines),
        # The same would happen without any GPU.
        kind_of="not-gpu",
        remedies=(
            Remedy(
                "Find the process that listens there, and end it.",
                look or shell_script("ss -ltnp"),
            ),
            Remedy(
                "Or give this run a port of its own: torchrun --master-port 29501, accelerate "
                "launch --main_process_port 29501; torchrun --standalone chooses a free one."
            ),
        ),
    )
