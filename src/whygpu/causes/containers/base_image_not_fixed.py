"""The base image has no fixed release: it does not exist, or changes its CUDA without notice.

## Why it happens

NVIDIA has withdrawn the tag `latest` of its CUDA images, so `nvidia/cuda` without a tag cannot be
pulled any more. `tensorflow/tensorflow:latest-gpu` is another TensorFlow, with another CUDA, after
each release: an image that worked is different when it is built again.

## What it looks like

`manifest for nvidia/cuda:latest not found: manifest unknown`, or programs that fail after a rebuild
because TensorFlow, its CUDA or Python is newer.

## Fix

Name the release: `nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04`, or
`tensorflow/tensorflow:2.15.0-gpu`.

## Fires on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda
RUN pip install torch
```

```
==> Dockerfile <==
FROM tensorflow/tensorflow:latest-gpu
COPY . /app
```

## Quiet on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-base-ubuntu22.04
```

```
==> Dockerfile <==
FROM tensorflow/tensorflow:latest-gpu-py3
```

```
==> Dockerfile <==
ARG BASE
FROM nvidia/cuda:${BASE}
```

Another registry has tags of its own.

```
==> Dockerfile <==
FROM registry.example.com/nvidia/cuda
```

## Sources

- <https://hub.docker.com/r/nvidia/cuda>
- <https://www.tensorflow.org/install/docker>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.finding import MACHINE
from whygpu.tables.tensorflow_builds import build_of

_MOVING = ("latest-gpu", "latest-gpu-jupyter")
"""Tags with -py3 are from a time before TensorFlow 2.2, and do not move any more."""

_PUBLISHERS = ("", "docker.io", "index.docker.io", "registry-1.docker.io", "nvcr.io")

CAUSE = cause("WG815", __name__, __doc__, severity="error", effect="broken")


def _release_for(image: Setup) -> str:
    versions = (each.version for each in image.verdicts if "tensorflow" in each.requirement.name)
    version = next(filter(None, versions), "")
    build = build_of(version) if version else None
    if build is None:
        return "Name a release, such as nvidia/cuda:12.4.1-cudnn-runtime-ubuntu22.04."
    cudnn = f"cuDNN {build.cudnn}, for TensorFlow {version}"
    return f"Name a release with CUDA {build.cuda} and {cudnn}, which was built for them."


@CAUSE.on_setup
def detect(setup: Setup) -> Iterator[SetupFinding]:
    image = setup if setup.kind == "image" else setup.image
    if image is None:
        return
    base = image.base
    if base is None or base.place.file != setup.place.file or base.registry not in _PUBLISHERS:
        return
    if base.name == "nvidia/cuda" and base.tag in ("", "latest"):
        yield CAUSE.in_setup(
            base.place,
            subject=MACHINE,
            message="the images of nvidia/cuda have no tag `latest` any more: it cannot be pulled",
            fix=_release_for(image),
            rests_on=("arguments",),
        )
    elif base.name == "tensorflow/tensorflow" and base.tag in _MOVING:
        yield CAUSE.in_setup(
            base.place,
            subject="tensorflow",
            message=f"{base.tag} is another TensorFlow, with another CUDA, after each release",
            fix="Name the release that the program was made for, such as 2.15.0-gpu.",
            rests_on=("arguments",),
            severity="info",
        )
