"""A service, a pod or a job is made for a GPU, but asks for none.

## Why it happens

Containers and jobs get only the GPUs that they ask for, even if the machine has more. Compose needs
`gpus: all` or a reservation of devices, Kubernetes a limit of `nvidia.com/gpu`, Slurm `--gres` or
`--gpus`, PBS `ngpus`, LSF `-gpu`. An image with CUDA, a node selector or a partition with "gpu" in
its name gives none. A request of Kubernetes without a limit, or with another number, is refused.
Often the line was commented out for a test and stayed so.

## What it looks like

The program starts and uses the CPU: "Found no NVIDIA driver on your system", `no CUDA-capable
device is detected`, or nothing at all. `nvidia-smi` is not there, or lists no GPU.

## Fix

Ask for the GPU in the file: `gpus: all` in the service, `limits: {nvidia.com/gpu: 1}` in the
container of the pod, `#SBATCH --gres=gpu:1` in the job. If the GPU is asked for elsewhere, say so
with `# whygpu: ignore[gpu-not-requested] where`.

## Fires on (setup)

```
==> compose.yaml <==
services:
  train:
    build: .
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04
RUN pip install torch
```

```
==> docker-compose.yml <==
services:
  jupyter:
    image: tensorflow/tensorflow:2.15.0-gpu-jupyter
    ports: ["8888:8888"]
```

The capabilities are missing.

```
==> compose.yaml <==
services:
  llm:
    image: vllm/vllm-openai:v0.6.0
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: 1
```

A node with GPUs, but no limit.

```
==> job.yaml <==
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  template:
    spec:
      nodeSelector:
        cloud.google.com/gke-accelerator: nvidia-tesla-t4
      containers:
        - name: main
          image: example/train:1
          resources:
            limits:
              # nvidia.com/gpu: 1
              memory: 8Gi
```

```
==> pod.yaml <==
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
    - name: main
      image: example/train:1
      resources:
        requests:
          nvidia.com/gpu: 1
```

```
==> train.sh <==
#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --time=1:00:00
##SBATCH --gres=gpu:1
python train.py
```

```
==> devcontainer.json <==
{
  // for training
  "image": "nvcr.io/nvidia/pytorch:24.01-py3"
}
```

The program that the service starts needs a GPU.

```
==> compose.yaml <==
services:
  train:
    build: .
==> Dockerfile <==
FROM python:3.11
COPY . /app
CMD ["python", "/app/train.py"]
==> train.py <==
import torch
model = torch.nn.Linear(2, 2).cuda()
```

```
==> train.sbatch <==
#!/bin/bash
#SBATCH --gres=gpu:1
srun --gres=none python train.py
```

The command, or a variable, asks for a GPU.

```
==> compose.yaml <==
services:
  train:
    image: example/train:1
    command: python train.py --device cuda
```

```
==> compose.yaml <==
services:
  whisper:
    image: example/whisper:1
    environment: [DEVICE=cuda]
```

```
==> .github/workflows/test.yml <==
on: push
jobs:
  test:
    runs-on: ubuntu-latest
    steps:
      - run: |
          pip install torch
          nvidia-smi
```

## Quiet on (setup)

The program works without a GPU as well.

```
==> compose.yaml <==
services:
  train:
    build: .
==> Dockerfile <==
FROM python:3.11
CMD python train.py
==> train.py <==
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(2, 2).to(device)
```

A runner of its owner may have one.

```
==> .github/workflows/test.yml <==
on: push
jobs:
  test:
    runs-on: [self-hosted, linux]
    steps:
      - run: nvidia-smi
```


```
==> compose.yaml <==
services:
  train:
    image: vllm/vllm-openai:v0.6.0
    gpus: all
  web:
    image: nginx
```

Another file of the folder adds the GPU.

```
==> docker-compose.yml <==
services:
  train:
    image: tensorflow/tensorflow:2.15.0-gpu
==> docker-compose.gpu.yml <==
services:
  train:
    runtime: nvidia
```

The dev container adds a file that gives the GPU.

```
==> docker-compose.yml <==
services:
  train:
    image: tensorflow/tensorflow:2.15.0-gpu
==> .devcontainer/devcontainer.json <==
{"dockerComposeFile": ["../docker-compose.yml", "compose.yml"], "service": "train"}
==> .devcontainer/compose.yml <==
services:
  train:
    gpus: all
```

The container beside it has the GPU.

```
==> pod.yaml <==
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  tolerations:
    - key: nvidia.com/gpu
      operator: Exists
  containers:
    - name: main
      image: nvcr.io/nvidia/pytorch:24.01-py3
      resources:
        limits:
          nvidia.com/gpu: 1
    - name: logs
      image: busybox
```

Another accelerator.

```
==> tpu.yaml <==
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  nodeSelector:
    cloud.google.com/gke-tpu-accelerator: tpu-v5-lite-podslice
  containers:
    - name: main
      image: example/train:1
```

It manages the GPUs of its nodes.

```
==> plugin.yaml <==
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin}
spec:
  template:
    spec:
      tolerations:
        - key: nvidia.com/gpu
          operator: Exists
      containers:
        - name: plugin
          image: nvcr.io/nvidia/k8s-device-plugin:v0.14.1
```

```
==> train.sbatch <==
#!/bin/bash
#SBATCH -p gpu
#SBATCH --gres gpu:1
python train.py
```

```
==> train.pbs <==
#!/bin/bash
#PBS -q gpu
#PBS -l select=1:ncpus=8:ngpus=1
python train.py
```

Another script submits it with a GPU.

```
==> train.sbatch <==
#!/bin/bash
#SBATCH -p gpu
python train.py
==> submit.sh <==
#!/bin/bash
for seed in 1 2 3; do
  sbatch --gres=gpu:1 train.sbatch $seed
done
```

A scheduler that shares GPUs reads the annotation.

```
==> pod.yaml <==
apiVersion: v1
kind: Pod
metadata:
  name: train
  annotations: {gpu-fraction: "0.5"}
spec:
  containers:
    - name: main
      image: nvcr.io/nvidia/pytorch:24.01-py3
```

An image for the CPU.

```
==> compose.yaml <==
services:
  serve:
    build:
      context: .
      dockerfile: Dockerfile.cpu
==> Dockerfile.cpu <==
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
```

## Sources

- <https://docs.docker.com/compose/how-tos/gpu-support/>
- <https://kubernetes.io/docs/tasks/manage-gpus/scheduling-gpus/>
- <https://slurm.schedmd.com/gres.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding, SetupKind
from whygpu.model.finding import MACHINE

CAUSE = cause("WG811", __name__, __doc__, severity="error", effect="cpu")

_FIXES: dict[SetupKind, str] = {
    "service": "Add `gpus: all` to the service, or reserve devices with capabilities: [gpu].",
    "pod": "Add `nvidia.com/gpu: 1` to the limits of the container.",
    "workflow job": "Choose a runner with a GPU, and give its container `options: --gpus all`.",
    "job": "Ask for a GPU in a directive, such as #SBATCH --gres=gpu:1, or #PBS -l ngpus=1.",
    "dev container": 'Add "runArgs": ["--gpus", "all"], or "hostRequirements": {"gpu": true}.',
}


@CAUSE.on_setup
def detect(setup: Setup) -> Iterator[SetupFinding]:
    fix = _FIXES.get(setup.kind)
    if fix is None:
        return
    for grant in setup.grants:
        if grant.refused:
            yield CAUSE.in_setup(
                grant.place,
                subject=MACHINE,
                message=f"{setup.title} asks for {grant.text}, but gets no GPU: {grant.refused}",
                fix=f"Write {grant.edits[0].replacement}." if grant.edits else fix,
                # A line that is refused is wrong whatever else gives a GPU.
                rests_on=("gpus",) if grant.text.startswith("runtime") else (),
                edits=grant.edits,
            )
            return
    if setup.grants or not setup.for_gpu or setup.for_cpu or setup.grant_elsewhere:
        return
    commented = setup.commented_grant
    reason = next((each for each in setup.for_gpu if not each.doubt), setup.for_gpu[0])
    is_removed = commented is not None and not setup.grant_is_offered
    yield CAUSE.in_setup(
        commented or setup.place,
        subject=MACHINE,
        message=f"{setup.title} is made for a GPU ({reason.text}) but asks for none"
        + (": the line that asks for one is commented out" if commented else ""),
        fix=fix,
        rests_on=("gpus",) if is_removed else ("purpose", "gpus"),
        confidence="likely",
        severity="warning",
    )
