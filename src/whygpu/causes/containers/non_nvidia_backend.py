"""The framework was built for another maker's GPUs than this machine has.

## Why it happens

A build with CUDA computes on NVIDIA's GPUs only, one with ROCm on AMD's only. The package that
`pip install torch` or `tensorflow` brings on Linux is the CUDA one, whatever the machine has. On a
Mac, TensorFlow and JAX use the GPU only through an additional package.

Graphics inside a processor (Intel's, most of AMD's) are there to draw; a machine that has nothing
else counts as one without a GPU.

## What it looks like

Nothing fails: the list of GPUs is empty and everything runs on the CPU.

## Fix

Install the build for this machine's GPU: ROCm for AMD's, XPU for Intel's, Metal on a Mac.

## Fires on (machine)

An AMD card under PyTorch's CUDA build.

```toml
start = "no-gpu"
only = ["torch"]
[[graphics]]
vendor = "amd"
address = "0000:03:00.0"
device_id = "744c"
kernel_driver = "amdgpu"
```

A ROCm build on a machine with an NVIDIA card.

```toml
only = ["torch"]
[target.frameworks.torch.build]
kind = "rocm"
```

## Quiet on (machine)

Graphics in an Intel processor, and graphics in an AMD processor.

```toml
start = "no-gpu"
[[graphics]]
vendor = "intel"
address = "0000:00:02.0"
device_id = "9a49"
kernel_driver = "i915"
```

```toml
start = "no-gpu"
[[graphics]]
vendor = "amd"
address = "0000:05:00.0"
device_id = "1638"
kernel_driver = "amdgpu"
```

## Cannot tell on (machine)

```toml
start = "no-gpu"
only = ["torch"]
[[graphics]]
vendor = "amd"
address = "0000:03:00.0"
device_id = "744c"
kernel_driver = "amdgpu"
[target.frameworks.torch.build]
kind = {unknown = "torch/version.py: permission denied"}
```

## Sources

- <https://pytorch.org/get-started/locally/>
- <https://rocm.docs.amd.com/projects/install-on-linux/en/latest/>
- <https://docs.jax.dev/en/latest/installation.html>
- <https://developer.apple.com/metal/tensorflow-plugin/>
- <https://docs.pytorch.org/docs/stable/notes/get_start_xpu.html>
"""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.cause import cause
from whygpu.model.derived import display_name, nvidia_gpu
from whygpu.model.driver import GraphicsDevice
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.observed import Absent, Known, Unknown, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import BuildKind, Framework
from whygpu.tables.graphics_devices import INTEL_INTEGRATED, display_only

CAUSE = cause(
    "WG803",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=("gpu-unused", "keras-backend-without-gpu"),
)

_JUDGED = ("tensorflow", "jax", "torch")
"""Others are installed for other purposes as often as not."""

_MAKERS = {"amd": "an AMD GPU", "intel": "an Intel GPU", "apple": "Apple's GPU"}

_UNFIT: dict[str, tuple[BuildKind, ...]] = {
    "nvidia": ("rocm",),
    "amd": ("cuda",),
    "intel": ("cuda",),
    "apple": ("cpu", "cuda"),
}
"""Builds that cannot use a maker's GPUs, and that another build would replace."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    nvidia = nvidia_gpu(machine)
    others = _computing_devices(machine)
    if isinstance(nvidia, Known):
        if any(device.vendor == "amd" for device in others):
            # With both makers' cards a ROCm build may be there on purpose.
            return
        yield from _judge(machine, "nvidia", seen(nvidia))
        return
    if not isinstance(machine.graphics, Known):
        need(machine.graphics)
    for device in others[:1]:
        where = f" at {device.address}" if device.address else ""
        text = f"{_MAKERS[device.vendor]} ({device.device_id}){where}"
        yield from _judge(machine, device.vendor, seen(machine.graphics, text))


def _computing_devices(machine: Snapshot) -> tuple[GraphicsDevice, ...]:
    """GPUs of other makers that frameworks can compute on."""
    if not isinstance(machine.graphics, Known):
        return ()
    return tuple(
        device
        for device in machine.graphics.value
        if device.vendor == "apple"
        or (device.vendor == "amd" and display_only("amd", device.device_id) is None)
        or (device.vendor == "intel" and not device.address.endswith(INTEL_INTEGRATED))
    )


def _judge(machine: Snapshot, vendor: str, gpu: Evidence) -> Iterator[Finding | Gap]:
    for framework in need(machine.target.frameworks):
        kind = framework.build.kind
        if framework.name not in _JUDGED or isinstance(kind, Absent):
            continue
        name = f"{display_name(framework.name)} {framework.version}"
        if isinstance(kind, Unknown):
            yield Gap(f"which GPUs {name} was built for: {kind.reason}")
        elif kind.value in _UNFIT[vendor]:
            built = "without GPU support" if kind.value == "cpu" else f"for {_WORDS[kind.value]}"
            yield CAUSE.finding(
                subject=framework.name,
                message=f"{name} is built {built} and cannot use the GPU of this machine, "
                f"{gpu.text}",
                evidence=(seen(kind, f"built for {kind.value}"), gpu),
                remedies=(_remedy(framework, vendor),),
                confidence="certain" if vendor == "nvidia" else "likely",
            )


_WORDS = {"cuda": "CUDA (NVIDIA's GPUs)", "rocm": "ROCm (AMD's GPUs)"}

_COMMANDS = {
    ("torch", "nvidia"): "python -m pip uninstall -y torch && python -m pip install torch",
    ("tensorflow", "nvidia"): "python -m pip install 'tensorflow[and-cuda]'",
    ("jax", "nvidia"): "python -m pip install 'jax[cuda12]'",
    ("torch", "intel"): "python -m pip uninstall -y torch && python -m pip install torch "
    "--index-url https://download.pytorch.org/whl/xpu",
    ("tensorflow", "apple"): "python -m pip install tensorflow-metal",
    ("jax", "apple"): "python -m pip install jax-metal",
}

_HINTS = {
    ("torch", "amd"): "PyTorch's ROCm build; https://pytorch.org/get-started/locally/ has the "
    "command for the current one",
    ("tensorflow", "amd"): "AMD's build of TensorFlow (tensorflow-rocm), as AMD's ROCm guide says",
    ("jax", "amd"): "JAX's ROCm plugin, as AMD's ROCm guide says",
    ("tensorflow", "intel"): "Intel's extension for TensorFlow",
    ("jax", "intel"): "Intel's extension for OpenXLA",
    ("tensorflow", "apple"): "Apple's plug-in, which fits some releases of TensorFlow only",
    ("jax", "apple"): "Apple's plug-in, which is experimental and fits some releases only",
}


def _remedy(framework: Framework, vendor: str) -> Remedy:
    key = (framework.name, vendor)
    fallback = f"the build of {display_name(framework.name)} for this GPU"
    return Remedy(f"Install {_HINTS.get(key, fallback)}.", _COMMANDS.get(key))
