"""A step of an image build needs a GPU, and builds have none.

## Why it happens

`docker build` starts its steps without GPUs and without the driver, also on a machine that has
them; `--gpus` is an option of `docker run` only. A RUN instruction with `nvidia-smi`, or one that
requires `torch.cuda.is_available()`, therefore ends the build, on every machine whose default
runtime was not changed.

## What it looks like

`nvidia-smi: not found`, `AssertionError` or `Found no NVIDIA driver on your system` in the output
of the build.

## Fix

Move the check into the program or into CMD. Name the GPUs that code is compiled for with
TORCH_CUDA_ARCH_LIST or CMAKE_CUDA_ARCHITECTURES.

## Fires on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
RUN nvidia-smi
```

```
==> Dockerfile <==
FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime
RUN python -c "import torch; assert torch.cuda.is_available()"
```

```
==> Dockerfile <==
FROM nvidia/cuda:12.4.1-runtime-ubuntu22.04
RUN set -eux; nvidia-smi; apt-get update
```

## Quiet on (setup)

```
==> Dockerfile <==
FROM pytorch/pytorch:2.1.0-cuda12.1-cudnn8-runtime
RUN nvidia-smi || true
RUN nvidia-smi && echo "a GPU" || echo "no GPU"
RUN nvidia-smi; echo "the shell goes on"
RUN if nvidia-smi; then echo "a GPU"; fi
RUN python -c "import torch; print(torch.cuda.is_available())"
CMD nvidia-smi
```

## Sources

- <https://docs.docker.com/reference/cli/docker/buildx/build/>
- <https://github.com/NVIDIA/nvidia-container-toolkit>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding, ShellCommand
from whygpu.model.finding import MACHINE
from whygpu.model.lazy_regex import late

CAUSE = cause("WG814", __name__, __doc__, severity="error", effect="broken")

_REQUIRES_GPU = late(
    r"assert\s[^;\n]{0,40}(?:cuda\.is_available\(\)|list_physical_devices\(|is_gpu_available\(\))"
    r"|(?:exit|SystemExit)[^;\n]{0,20}not[^;\n]{0,20}cuda\.is_available\(\)"
)


@CAUSE.on_setup
def detect(setup: Setup) -> Iterator[SetupFinding]:
    if setup.kind != "image":
        return
    for command in setup.commands:
        if not command.may_fail and _needs_gpu(command):
            yield CAUSE.in_setup(
                command.place,
                subject=MACHINE,
                message="this step needs a GPU, but image builds have neither GPU nor driver: the "
                "build ends here",
                fix="Check for the GPU when the container runs.",
                confidence="likely",
            )


def _needs_gpu(command: ShellCommand) -> bool:
    words = command.plain_words
    if words == ("nvidia-smi",):
        return True
    return bool(words) and "python" in words[0] and any(map(_REQUIRES_GPU.search, words))
