"""An image has not the CUDA libraries that its TensorFlow opens.

## Why it happens

TensorFlow opens CUDA and cuDNN by name, and each release needs the ones that it was built for: 2.10
needs CUDA 11 and cuDNN 8, 2.18 needs CUDA 12 and cuDNN 9. They come with `tensorflow[and-cuda]`, or
from the image. A base image with another CUDA, one without cuDNN, or the flavour `base`, which has
no cuBLAS, does not have them. PyTorch and JAX bring their own libraries, so for them the CUDA of
the image does not matter.

Some releases bring the libraries and do not find them: tensorflow[and-cuda] 2.16.1 is one.

## What it looks like

`Could not load dynamic library 'libcudnn.so.8'`, `Cannot dlopen some GPU libraries. Skipping
registering GPU devices`, and an empty list of GPUs. The program runs on the CPU.

## Fix

Install `tensorflow[and-cuda]` (2.14 and newer), or choose the base image by the release:
`whygpu plan tensorflow==2.10` shows which CUDA and cuDNN it needs.

## Fires on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:11.2.2-cudnn8-runtime-ubuntu20.04
RUN pip3 install tensorflow==2.3.0
```

The release is in another file.

```
==> docker/Dockerfile <==
FROM nvidia/cuda:10.2-cudnn7-runtime-ubuntu18.04
WORKDIR /app
COPY docker/requirements.txt /tmp/install.txt
RUN python3 -m pip install -r /tmp/install.txt
==> docker/requirements.txt <==
numpy
tensorflow-gpu==2.2.0
```

Without cuDNN, and without the other libraries.

```
==> Dockerfile <==
FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04
RUN pip install "tensorflow==2.13.*"
```

```
==> Dockerfile <==
FROM nvidia/cuda:11.8.0-base-ubuntu22.04
RUN pip install tensorflow==2.12.0
```

The service gets a GPU, and its image has no CUDA at all.

```
==> compose.yaml <==
services:
  train:
    build: ./app
    gpus: all
==> app/Dockerfile <==
FROM python:3.10
RUN pip install tensorflow==2.11.0
```

```
==> requirements.txt <==
tensorflow[and-cuda]==2.16.1
```

## Quiet on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:11.8.0-cudnn8-runtime-ubuntu22.04
RUN pip install tensorflow==2.12.0
```

They come with TensorFlow.

```
==> Dockerfile <==
FROM python:3.11
ENV NVIDIA_VISIBLE_DEVICES=all
RUN pip install "tensorflow[and-cuda]==2.18.0"
```

Another step brings them.

```
==> Dockerfile <==
FROM python:3.11
ENV NVIDIA_VISIBLE_DEVICES=all
RUN pip install "tensorflow[and-cuda]==2.18.0"
COPY requirements.txt .
RUN pip install -r requirements.txt
==> requirements.txt <==
tensorflow>=2.8
```

PyTorch brings its own.

```
==> Dockerfile <==
FROM nvidia/cuda:11.2.2-base-ubuntu20.04
RUN pip install torch==2.0.1
```

cuDNN is installed as well.

```
==> Dockerfile <==
FROM nvidia/cuda:11.8.0-runtime-ubuntu22.04
RUN apt-get update && apt-get install -y libcudnn8
RUN pip install tensorflow==2.12.0
```

The image has a TensorFlow, and it satisfies the requirement.

```
==> Dockerfile <==
FROM tensorflow/tensorflow:2.4.1-gpu
COPY requirements.txt .
RUN pip install -r requirements.txt
==> requirements.txt <==
tensorflow>=2.3
```

Nothing says that it is for a GPU.

```
==> Dockerfile <==
FROM python:3.10
RUN pip install tensorflow==2.11.0
```

## Sources

- <https://www.tensorflow.org/install/source#gpu>
- <https://gitlab.com/nvidia/container-images/cuda>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.setup_requirements import already_in_base, wanted_instead
from whygpu.model.cause import cause
from whygpu.model.deployment import BaseImage, Setup, SetupFinding
from whygpu.model.requirement_file import RequirementVerdict
from whygpu.tables.base_images import cuda_serves
from whygpu.tables.tensorflow_builds import TensorflowBuild, build_of

CAUSE = cause("WG812", __name__, __doc__, severity="error", effect="cpu")


@CAUSE.on_setup
def detect(setup: Setup) -> Iterator[SetupFinding]:
    if setup.kind == "image":
        if setup.for_gpu and not setup.for_cpu:
            yield from _in_image(setup, setup.for_gpu[0].text)
    elif setup.image is not None and setup.given and not setup.image.for_cpu:
        yield from _in_image(setup.image, f"{setup.title} gets a GPU")
    if setup.kind in ("image", "requirements"):
        yield from _defective(setup)


def _in_image(image: Setup, reason: str) -> Iterator[SetupFinding]:
    base = image.base
    brings = any("and-cuda" in requirement.extras for requirement in image.requirements)
    if base is None or image.has_own_cuda or brings:
        return
    for verdict in image.verdicts:
        if verdict.kind != "cuda-not-included" or already_in_base(verdict, base):
            continue
        build = build_of(verdict.version) if verdict.version else None
        lack = _lack(base, build) if build is not None else ""
        if build is None or not lack:
            continue
        where = f"{base.place.file}:{base.place.line}"
        yield CAUSE.in_setup(
            verdict.requirement.place,
            subject="tensorflow",
            message=f"TensorFlow {verdict.version} needs CUDA {build.cuda} and cuDNN "
            f"{build.cudnn}, but the image {base.reference} ({where}) {lack}: it will find no GPU "
            f"({reason})",
            fix=_fix(verdict, build),
            confidence="likely",
        )


def _lack(base: BaseImage, build: TensorflowBuild) -> str:
    """What the image does not have; empty if it has all, or if its name does not tell."""
    if base.is_plain:
        return "has no CUDA"
    if not base.cuda:
        return ""
    if not cuda_serves(build.cuda, base.cuda):
        return f"has CUDA {base.cuda}"
    if base.flavour == "base":
        return "has only the CUDA runtime, without cuBLAS and the other libraries"
    if not base.cudnn:
        return "has no cuDNN"
    return f"has cuDNN {base.cudnn}" if base.cudnn != build.cudnn else ""


def _fix(verdict: RequirementVerdict, build: TensorflowBuild) -> str:
    wanted = wanted_instead(verdict)
    if "and-cuda" in wanted:
        return f"Write {wanted}, which brings its libraries."
    minor = ".".join(build.cuda.split(".")[:2])
    return f"Choose a base image with CUDA {minor} and cuDNN {build.cudnn}, as nvidia/cuda has it."


def _defective(setup: Setup) -> Iterator[SetupFinding]:
    """Releases that bring the libraries and do not find them."""
    for verdict in setup.verdicts:
        requirement = verdict.requirement
        if verdict.kind == "defect" and "and-cuda" in requirement.extras:
            yield CAUSE.in_setup(
                requirement.place,
                subject="tensorflow",
                message=f"{requirement.name} {verdict.reason}",
                fix=f"Write {wanted_instead(verdict) or 'another release'}.",
            )
