"""An image contains files of the NVIDIA driver, which must come from the host.

## Why it happens

`libcuda.so.1` belongs to the driver, and the container runtime puts the host's copy into the
container. Packages such as `nvidia-driver-535`, `cuda-drivers` and the full package `cuda` put
another copy into the image. The stub library of the toolkit (`stubs/libcuda.so`) is only for
linking: if it is called `libcuda.so.1` and its folder is searched when the program runs, it is
found instead of the driver.

## What it looks like

`CUDA driver is a stub library` (error 34), `CUDA driver version is insufficient`, `Driver/library
version mismatch`, or no GPU at all, although nvidia-smi works on the host.

## Fix

Install the toolkit without the driver (`cuda-toolkit-12-4` instead of `cuda`). Link against the
stub with `LIBRARY_PATH` or `LDFLAGS`, and remove the link in the same RUN instruction.

## Fires on (setup)

```
==> Dockerfile <==
FROM nvidia/cuda:12.2.0-devel-ubuntu22.04
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y nvidia-driver-535 git
```

```
==> Dockerfile <==
FROM nvidia/cuda:12.2.0-devel-ubuntu22.04
RUN ln -s /usr/local/cuda/lib64/stubs/libcuda.so /usr/local/cuda/lib64/stubs/libcuda.so.1
ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs:${LD_LIBRARY_PATH}
```

```
==> Dockerfile <==
FROM ubuntu:22.04
COPY lib/libcuda.so.535.54.03 /usr/lib/x86_64-linux-gnu/
```

## Quiet on (setup)

```
==> Dockerfile <==
FROM ubuntu:22.04
RUN apt-get update && apt-get install -y cuda-toolkit-12-4 libcudnn9-cuda-12
```

The stub is used for the build and removed.

```
==> Dockerfile <==
FROM nvidia/cuda:12.2.0-devel-ubuntu22.04
RUN ln -s /usr/local/cuda/lib64/stubs/libcuda.so /usr/local/cuda/lib64/stubs/libcuda.so.1 && \\
    LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs make && \\
    rm /usr/local/cuda/lib64/stubs/libcuda.so.1
ENV LD_LIBRARY_PATH=/usr/local/cuda/lib64/stubs:${LD_LIBRARY_PATH}
```

Nothing in it computes: TensorFlow is only compiled there.

```
==> Dockerfile <==
FROM ubuntu:16.04
RUN apt-get update && apt-get install -y libcuda1-384 build-essential
CMD ["/bin/bash"]
```

The stubs have no libcuda.so.1, so programs still find the driver.

```
==> Dockerfile <==
FROM nvidia/cuda:12.2.0-devel-ubuntu22.04
ENV LIBRARY_PATH=/usr/local/cuda/lib64/stubs
```

## Sources

- <https://docs.nvidia.com/cuda/cuda-installation-guide-linux/#meta-packages>
- <https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/>
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.deployment import Setup, SetupFinding, ShellCommand
from whygpu.model.finding import MACHINE
from whygpu.model.lazy_regex import late

CAUSE = cause("WG813", __name__, __doc__, severity="warning", effect="cpu")

_DRIVER_PACKAGE = late(
    r"nvidia-driver-\d{3}[\w-]*|nvidia-\d{3}|cuda-drivers[\w-]*|libnvidia-compute-\d{3}[\w-]*"
    r"|nvidia-headless-\d{3}[\w-]*|libcuda1(?:-\d+)?|cuda|cuda-\d+-\d+|cuda-runtime-\d+-\d+"
)
_DRIVER_FILE = late(r"lib(?:cuda|nvidia-ml|nvidia-ptxjitcompiler)\.so(?:\.[\d.]{1,20})?")
_COMPUTES = late(r"tensorflow|torch|jax|keras|pytorch|cupy|vllm|onnxruntime-gpu|paddlepaddle|mxnet")
_INSTALLS = frozenset({"apt-get", "apt", "yum", "dnf", "microdnf", "aptitude"})
_SEARCHED = ("/usr/lib", "/lib", "/usr/local/lib")
_ALSO_SEARCHED = ("/usr/local/cuda", "/usr/local/nvidia")
"""Images of CUDA have these in LD_LIBRARY_PATH, or in the files of ldconfig."""


@CAUSE.on_setup
def detect(setup: Setup) -> Iterator[SetupFinding]:
    if setup.kind != "image" or "driver" in os.path.basename(setup.place.file).lower():
        return
    for command in setup.commands if _is_run_with_gpus(setup) else ():
        package = _driver_package(command)
        if package:
            yield CAUSE.in_setup(
                command.place,
                subject=MACHINE,
                message=f"{package} puts the libraries of a driver into the image, which may hide "
                "those of the host's driver",
                fix="Leave the driver to the host; install a toolkit package, such as "
                "cuda-toolkit-12-4, if the image needs one.",
                rests_on=("purpose", "driver"),
                confidence="likely",
            )
    searched = _searched_folders(setup)
    for copy in setup.copies:
        is_driver = _DRIVER_FILE.fullmatch(os.path.basename(copy.source))
        if not is_driver or "stubs" in copy.source:
            continue
        folder = os.path.dirname(copy.target) if ".so" in copy.target else copy.target.rstrip("/")
        if folder in searched or folder.startswith((*_SEARCHED, *_ALSO_SEARCHED)):
            yield CAUSE.in_setup(
                copy.place,
                subject=MACHINE,
                message=f"{copy.source} belongs to a driver, and must have the version of the "
                "host's driver: the container runtime brings it",
                fix="Leave it out: the container gets the host's file if it asks for a GPU.",
                rests_on=("purpose", "driver"),
                confidence="likely",
            )
    if not any(map(_builds_a_package, setup.commands)):
        yield from _stub(setup)


def _is_run_with_gpus(setup: Setup) -> bool:
    """An image in which something is only compiled needs libcuda.so.1 to link, and no GPU."""
    base = setup.base
    return (
        any(_COMPUTES.match(requirement.name) for requirement in setup.requirements)
        or setup.program is not None
        or (base is not None and bool(base.uses_gpu))
        or any(setting.name.startswith("NVIDIA_") for setting in setup.variables)
    )


def _builds_a_package(command: ShellCommand) -> bool:
    """An image that compiles a framework gives its package to others, and is not run with a GPU."""
    words = command.plain_words
    return words[:2] == ("bazel", "build") or any(word.endswith("bdist_wheel") for word in words)


def _driver_package(command: ShellCommand) -> str:
    words = command.plain_words
    if not words or words[0] not in _INSTALLS or "install" not in words:
        return ""
    listed = words[words.index("install") + 1 :]
    plain = (word.partition("=")[0] for word in listed if not word.startswith("-"))
    return next((word for word in plain if _DRIVER_PACKAGE.fullmatch(word)), "")


def _searched_folders(setup: Setup) -> list[str]:
    """Those in the LD_LIBRARY_PATH of the image."""
    values = (s.value for s in reversed(setup.variables) if s.name == "LD_LIBRARY_PATH")
    return [folder.rstrip("/") for folder in next(filter(None, values), "").split(":")]


def _stub(setup: Setup) -> Iterator[SetupFinding]:
    searched = _searched_folders(setup)
    linked: dict[str, ShellCommand] = {}
    for command in setup.commands:
        words = command.words
        if words[:1] in (("rm",), ("unlink",)):
            linked = {name: c for name, c in linked.items() if name not in words}
        elif words[:1] in (("ln",), ("cp",)) and any("stubs/libcuda.so" in word for word in words):
            target = words[-1].rstrip("/")
            if target.endswith("libcuda.so.1"):
                linked[target] = command
    for target, command in linked.items():
        folder = os.path.dirname(target)
        if folder in searched or folder.startswith(_SEARCHED):
            yield CAUSE.in_setup(
                command.place,
                subject=MACHINE,
                message=f"{target} is a stub of the driver in a folder that programs search: it "
                "is found instead of the driver, and CUDA does not start",
                fix="Remove the link at the end of the same RUN instruction.",
                rests_on=("purpose", "packages"),
                severity="error",
                confidence="likely",
            )
