"""Processes that exchange data have only the 64 MB of shared memory that containers get.

## Why it happens

PyTorch's data loaders pass batches from their worker processes through `/dev/shm`, and NCCL uses it
between GPUs that do not reach each other directly. Docker and Kubernetes give a container 64 MB of
it. One batch of images, or one model on several GPUs, needs more.

## What it looks like

`RuntimeError: DataLoader worker is killed by signal: Bus error. It is possible that dataloader's
workers are out of shared memory`, `NCCL WARN Error while creating shared memory segment`, or a
program that hangs at its first step.

## Fix

Compose: `shm_size: 8gb`, or `ipc: host`. Kubernetes: mount a volume `emptyDir: {medium: Memory}` at
`/dev/shm`. `shm_size` below `build` is for the build only.

## Fires on (setup)

```
==> compose.yaml <==
services:
  train:
    build: .
    command: python train.py
    gpus: all
==> Dockerfile <==
FROM pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime
COPY . /app
==> train.py <==
from torch.utils.data import DataLoader
loader = DataLoader(data, batch_size=256, num_workers=8)
```

```
==> vllm.yaml <==
apiVersion: v1
kind: Pod
metadata: {name: llm}
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.6.0
      args: ["--model", "example/70b", "--tensor-parallel-size", "4"]
      resources: {limits: {nvidia.com/gpu: 4}}
```

## Quiet on (setup)

```
==> compose.yaml <==
services:
  train:
    image: pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime
    command: python train.py
    shm_size: 8gb
    gpus: all
==> train.py <==
from torch.utils.data import DataLoader
loader = DataLoader(data, batch_size=256, num_workers=8)
```

```
==> compose.yaml <==
services:
  train:
    image: pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime
    command: python train.py
    gpus: all
==> train.py <==
from torch.utils.data import DataLoader
loader = DataLoader(data, batch_size=256)
```

```
==> vllm.yaml <==
apiVersion: v1
kind: Pod
metadata: {name: llm}
spec:
  containers:
    - name: vllm
      image: vllm/vllm-openai:v0.6.0
      args: ["--tensor-parallel-size", "4"]
      resources: {limits: {nvidia.com/gpu: 4}}
      volumeMounts: [{name: shm, mountPath: /dev/shm}]
  volumes:
    - name: shm
      emptyDir: {medium: Memory}
```

Each process is in a pod of its own.

```
==> ray.yaml <==
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: llm}
spec:
  headGroupSpec:
    template:
      spec:
        containers:
          - name: head
            image: vllm/vllm-openai:v0.6.0
            args: ["--tensor-parallel-size", "2", "--distributed-executor-backend", "ray"]
            resources: {limits: {nvidia.com/gpu: 1}}
```

## Sources

- <https://github.com/pytorch/pytorch#docker-image>
- <https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html>
- <https://docs.vllm.ai/en/latest/deployment/docker.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.finding import MACHINE

CAUSE = cause("WG816", __name__, __doc__, severity="warning", effect="broken")

_FIXES = {
    "service": "Add `shm_size: 8gb` to the service, or `ipc: host`.",
    "pod": "Mount an emptyDir with medium: Memory at /dev/shm.",
}


@CAUSE.on_setup
def detect(setup: Setup) -> Iterator[SetupFinding]:
    fix = _FIXES.get(setup.kind)
    if fix is None or not setup.has_default_memory or not setup.given:
        return
    reason = _reason(setup)
    if reason:
        yield CAUSE.in_setup(
            setup.place,
            subject=MACHINE,
            message=f"{setup.title} has the default 64 MB of shared memory, but {reason}",
            fix=fix,
            rests_on=("memory",),
            confidence="likely",
        )


def _reason(setup: Setup) -> str:
    workers = setup.program.workers if setup.program is not None else None
    if workers is not None:
        return f"{workers.file}:{workers.line} loads data in worker processes, which use it"
    several = setup.several_processes
    counts = [grant.gpus for grant in setup.given]
    if several is None or (None not in counts and sum(each or 0 for each in counts) < 2):
        # With one GPU, the other processes are in other containers.
        return ""
    return f"{several.text}: its processes exchange data there"
