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

A job loads the CUDA of another release.

```
==> train.sbatch <==
#!/bin/bash
#SBATCH --gres=gpu:1
module load cuda/10.2 cudnn/7.6
pip install tensorflow==2.11.0
python train.py
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

They come with TensorFlow, also in a job.

```
==> train.sbatch <==
#!/bin/bash
#SBATCH --gres=gpu:1
module load cuda/11.0
pip install "tensorflow[and-cuda]==2.18.0"
python train.py
```

```
==> Dockerfile <==
FROM python:3.11
ENV NVIDIA_VISIBLE_DEVICES=all
RUN pip install "tensorflow[and-cuda]==2.18.0"
```

The release does not find its own libraries, but those of the image.

```
==> Dockerfile <==
FROM nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04
RUN pip install "tensorflow[and-cuda]==2.16.1"
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

import os
from collections.abc import Iterator

from whygpu.causes.evidence.agreeing_tensorflow import Around, advice, around, pinned
from whygpu.causes.evidence.setup_requirements import already_in_base, wanted_instead
from whygpu.model.cause import cause
from whygpu.model.deployment import BaseImage, CudaModule, Setup, SetupFinding
from whygpu.model.requirement_file import PinnedRequirement, RequirementVerdict
from whygpu.tables.base_images import cuda_serves
from whygpu.tables.tensorflow_builds import TensorflowBuild, build_of

_OTHER_FRAMEWORKS = frozenset({"torch", "jax", "vllm", "mxnet", "paddlepaddle-gpu"})

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
    if setup.cuda_module is not None:
        yield from _in_job(setup, setup.cuda_module)


def _in_image(image: Setup, reason: str) -> Iterator[SetupFinding]:
    base = image.base
    brings = any("and-cuda" in requirement.extras for requirement in image.requirements)
    if base is None or image.has_own_cuda or brings:
        return
    for verdict in image.verdicts:
        if verdict.kind != "cuda-not-included" or already_in_base(verdict, base):
            continue
        other = _other_framework(image, verdict.requirement)
        if other and "gpu" not in os.path.basename(verdict.requirement.place.file).lower():
            continue
        build = build_of(verdict.version) if verdict.version else None
        lack = _lack(base, build, image.has_own_cudnn) if build is not None else ""
        if build is None or not lack:
            continue
        where = f"{base.place.file}:{base.place.line}"
        # Which release pip chooses from a range depends on the Python.
        is_newest = not image.python and "==" not in verdict.requirement.specifier
        doubt = "; an older Python gets an older release" if is_newest else ""
        doubt = f"; the GPU may be for {other}" if other else doubt
        yield CAUSE.in_setup(
            verdict.requirement.place,
            subject="tensorflow",
            message=f"TensorFlow {verdict.version} needs CUDA {build.cuda} and cuDNN "
            f"{build.cudnn}, but the image {base.reference} ({where}) {lack}: it will find no GPU "
            f"({reason}){doubt}",
            fix=_fix(verdict, image),
            rests_on=("purpose", "packages", "arguments"),
            confidence="possible" if doubt else "likely",
            severity="info" if doubt else None,
        )


def _in_job(job: Setup, module: CudaModule) -> Iterator[SetupFinding]:
    """A job that loads one CUDA, and installs a TensorFlow that was built for another."""
    if any(
        "and-cuda" in each.extras or each.name.startswith("nvidia-") for each in job.requirements
    ):
        return
    for verdict in job.verdicts:
        build = build_of(verdict.version) if verdict.kind == "cuda-not-included" else None
        if build is None:
            continue
        if not cuda_serves(build.cuda, module.cuda):
            lack = f"CUDA {module.cuda}"
        elif module.cudnn and module.cudnn != build.cudnn:
            lack = f"cuDNN {module.cudnn}"
        else:
            continue
        yield CAUSE.in_setup(
            module.place,
            subject="tensorflow",
            message=f"TensorFlow {verdict.version} (line {verdict.requirement.place.line} of "
            f"{verdict.requirement.place.file}) needs CUDA {build.cuda} and cuDNN {build.cudnn}, "
            f"but the job loads {lack}: it will find no GPU",
            fix=advice(
                pinned(verdict.requirement.specifier),
                Around(cuda=module.cuda, cudnn=module.cudnn, named=f"CUDA {module.cuda}"),
                "modules of",
            ),
            rests_on=("packages",),
            confidence="likely",
        )


def _other_framework(image: Setup, requirement: PinnedRequirement) -> str:
    """PyTorch or JAX, with TensorFlow for TensorBoard or its data sets; empty if there is none."""
    if "gpu" in requirement.name:
        return ""
    base = image.base
    if base is not None and base.framework not in ("", "tensorflow"):
        return base.framework
    names = (each.name for each in image.requirements if each.name in _OTHER_FRAMEWORKS)
    return next(names, "")


def _lack(base: BaseImage, build: TensorflowBuild, has_own_cudnn: bool) -> str:
    """What the image does not have; empty if it has all, or if its name does not tell."""
    if base.is_plain:
        return "has no CUDA"
    if not base.cuda:
        return ""
    if not cuda_serves(build.cuda, base.cuda):
        return f"has CUDA {base.cuda}"
    if base.flavour == "base":
        return "has only the CUDA runtime, without cuBLAS and the other libraries"
    if has_own_cudnn or not build.cudnn:
        return ""
    if not base.cudnn:
        return "has no cuDNN"
    return f"has cuDNN {base.cudnn}" if base.cudnn != build.cudnn else ""


def _fix(verdict: RequirementVerdict, image: Setup) -> str:
    given = around(image)
    if not given.cudnn and not image.has_own_cudnn:
        # No release finds all of its libraries there.
        given = given._replace(cuda="", named="")
    return advice(pinned(verdict.requirement.specifier), given)


def _defective(setup: Setup) -> Iterator[SetupFinding]:
    """Releases that bring the libraries and do not find them, in an image without others."""
    base = setup.base
    may_have_others = base is not None and not base.is_plain and base.flavour != "base"
    if setup.has_own_cuda or setup.has_own_cudnn or may_have_others:
        return
    for verdict in setup.verdicts:
        requirement = verdict.requirement
        if verdict.kind == "defect" and "and-cuda" in requirement.extras:
            yield CAUSE.in_setup(
                requirement.place,
                subject="tensorflow",
                message=f"{requirement.name} {verdict.reason}",
                fix=f"Write {wanted_instead(verdict) or 'another release'}.",
                rests_on=("packages", "arguments"),
            )
