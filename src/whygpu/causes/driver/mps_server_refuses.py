"""The server through which programs share a GPU (CUDA MPS) cannot be reached, or refuses.

## Why it happens

NVIDIA's Multi-Process Service (MPS) lets several processes use one GPU at the same time. If its
control daemon runs, every CUDA program that finds its folder (`/tmp/nvidia-mps`, or
`CUDA_MPS_PIPE_DIRECTORY`) works through it, and fails with it: the program, the framework and the
driver are in order. (MPS here is not the backend of the same name for Apple's GPUs.) The usual
reasons:

- The program runs in a container that shows it the daemon, but not all that it needs: the folder of
  the daemon and the host's shared memory (`--ipc=host`).
- The daemon belongs to another user. One server serves one user at a time, unless it was started
  with `-multiuser`.
- The daemon or the server has died, and its folder is left behind. After a fault of one client, the
  server does not accept new ones until all others have ended.
- More programs than it can serve.

## What it looks like

- PyTorch: `Error 805: MPS client failed to connect to the MPS control daemon or the MPS server`.
- TensorFlow, JAX: `CUDA_ERROR_MPS_CONNECTION_FAILED`, `CUDA_ERROR_MPS_SERVER_NOT_READY`.

`nvidia-smi` works, and shows `nvidia-cuda-mps-server` among the processes if the server runs.

## Fix

Look at the log of the daemon. If you do not need MPS, stop the daemon: programs then use the GPU
directly. In a container, mount the folder of the daemon and share the host's memory.

## Fires on (machine)

```toml
[probes.cuda]
devices = {unknown = "cuInit: 805 CUDA_ERROR_MPS_CONNECTION_FAILED"}
facts = [["libcuda.so.1", "loaded"], ["cuInit", "805 CUDA_ERROR_MPS_CONNECTION_FAILED"]]
```

## Quiet on (machine)

The driver itself is not ready.

```toml
[probes.cuda]
devices = {unknown = "cuInit: 802 CUDA_ERROR_SYSTEM_NOT_READY"}
facts = [["libcuda.so.1", "loaded"], ["cuInit", "802 CUDA_ERROR_SYSTEM_NOT_READY"]]
```

## Cannot tell on (machine)

```toml
probes_left_out = "--no-probe"
```

## Fires on (log)

```
RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 805: MPS client failed to connect to the MPS control daemon or the MPS server
```

It is a warning, and the program continues without the GPU.

```
/opt/conda/lib/python3.10/site-packages/torch/cuda/__init__.py:107: UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 805: MPS client failed to connect to the MPS control daemon or the MPS server (Triggered internally at /opt/conda/conda-bld/pytorch/work/c10/cuda/CUDAFunctions.cpp:109.)
  return torch._C._cuda_getDeviceCount() > 0
False
```

```
2024-11-12 15:36:48.401160: E external/local_xla/xla/stream_executor/cuda/cuda_driver.cc:266] failed call to cuInit: CUDA_ERROR_MPS_SERVER_NOT_READY: MPS server is not ready to accept new MPS client requests
```

## Quiet on (log)

Another GPU of another maker: its backend in PyTorch has the same name.

```
RuntimeError: MPS backend out of memory (MPS allocated: 18.13 GB, other allocations: 21.00 MB, max allowed: 18.13 GB).
```

The daemon of this log works.

```
[2024-06-10 15:16:40.777 Control 111377] Starting control daemon using socket /tmp/nvidia-mps/control
[2024-06-10 15:16:41.071 Control 111377] NEW CLIENT 0 from user 1000: Server is not ready, push client to pending list
Epoch 1: loss 0.71
```

## Sources

- <https://docs.nvidia.com/deploy/mps/index.html>
- <https://docs.nvidia.com/deploy/mps/latest/troubleshooting.html>
- <https://github.com/NVIDIA/nvidia-container-toolkit/issues/714>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.container_advice import runtime_of
from whygpu.causes.evidence.driver_state import CONSEQUENCES, cu_init, probed
from whygpu.causes.evidence.log_subjects import ended_after, subject_of
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import MACHINE, Finding, Gap, Remedy, seen
from whygpu.model.log import Log
from whygpu.model.observed import Known, Unknown, need
from whygpu.model.remedy import shell_script
from whygpu.model.snapshot import Snapshot
from whygpu.tables.status_families import FAMILIES, MPS_CODES

CAUSE = cause(
    "WG118",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(*CONSEQUENCES, "framework-crashes"),
)

_MOST_LINES = 6


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    gpu = nvidia_gpu(machine)
    need(gpu)
    answer = cu_init(machine)
    if isinstance(answer, Unknown):
        need(answer)
    if not isinstance(answer, Known) or answer.value.code not in MPS_CODES:
        return
    in_docker = runtime_of(machine) in ("docker", "containerd")
    yield CAUSE.finding(
        subject=MACHINE,
        message="programs share the GPU through NVIDIA's server MPS here, and it does not serve "
        f"this one: cuInit returned {answer.value.text}",
        evidence=(probed(answer), seen(gpu)),
        remedies=(_SHARE, *_ON_THE_HOST) if in_docker else _ON_THE_HOST,
    )


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    refused = log.status_named(*FAMILIES[CAUSE.slug])
    if not refused:
        return
    ends = ended_after(log, refused[0].line)
    lines = (*(status.line for status in refused), *ends)
    yield CAUSE.finding(
        subject=subject_of(log),
        message="programs share the GPU through NVIDIA's server MPS on that machine, and it does "
        f"not serve this one ({refused[0].name})",
        evidence=log.evidence(*lines[:_MOST_LINES]),
        effect="broken" if ends else "cpu",
        remedies=_REMEDIES,
    )


_ON_THE_HOST = (
    Remedy(
        "Look at what the daemon and the server wrote.",
        shell_script("tail /var/log/nvidia-mps/control.log /var/log/nvidia-mps/server.log"),
    ),
    Remedy(
        "If nobody needs MPS, stop its daemon, as the user who started it. Programs then use the "
        "GPU directly.",
        shell_script("echo quit | nvidia-cuda-mps-control"),
    ),
)
_SHARE = Remedy(
    "In a container, give it the folder of the daemon and the host's shared memory.",
    shell_script("docker run --gpus all --ipc=host -v /tmp/nvidia-mps:/tmp/nvidia-mps ..."),
)
_REMEDIES = (*_ON_THE_HOST, _SHARE)
