"""Facts that follow from a snapshot and that several judgements share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from whygpu.model.driver import Gpu, GraphicsDevice
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.probe import Probe
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import PLAIN_PIP, Framework, Installer

DISPLAY_NAMES = {
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "jax": "JAX",
    "torch": "PyTorch",
    "cupy": "CuPy",
    "onnxruntime": "ONNX Runtime",
    "numba": "Numba",
    "cuda": "the CUDA driver",
    "stress": "the GPU under load",
}

_ANSWERS_OF_A_DRIVER = ("mismatched", "denied", "lost", "hung")
"""States that only a kernel driver can report. It is loaded only if there is a GPU."""


_WITHOUT_ANSWER = ("missing", "not-loaded", "failed")
"""States without a list of GPUs, whether there is a GPU or not. Only the PCI bus can show one."""


def display_name(framework: str) -> str:
    return DISPLAY_NAMES.get(framework, framework)


def and_list(items: Sequence[str]) -> str:
    """a, b and c."""
    return f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else "".join(items)


def installer_of(machine: Snapshot) -> Installer:
    """The installer for this target's packages."""
    target, system = machine.target, machine.system.os
    if isinstance(target.installer, Known):
        return target.installer.value._replace(system=system)
    if isinstance(target.interpreter, Known):
        # The whole path is long, but it never names another interpreter.
        return PLAIN_PIP._replace(python=target.interpreter.value.path, system=system)
    return PLAIN_PIP._replace(system=system)


def compared_as(gpu: Gpu) -> str:
    """The model under whose name the speed of a GPU is compared: instances of MIG are parts."""
    if not isinstance(gpu.mig, Known) or not gpu.mig.value:
        return gpu.name
    layout = gpu.health.value.mig_layout if isinstance(gpu.health, Known) else gpu.health
    parts = dict.fromkeys(layout.value) if isinstance(layout, Known) else {}
    return f"{gpu.name} ({', '.join(parts) or 'MIG'})"


def nvidia_gpu(machine: Snapshot) -> Observed[str]:
    """The evidence of an NVIDIA GPU; absent if there is none."""
    driver = machine.driver
    if isinstance(driver.gpus, Known) and driver.gpus.value:
        names = ", ".join(gpu.name for gpu in driver.gpus.value)
        return Known(names, driver.gpus.source)
    if isinstance(machine.graphics, Known):
        for device in machine.graphics.value:
            if device.vendor == "nvidia":
                place = f" at {device.address}" if device.address else ""
                text = f"an NVIDIA device (id {device.device_id}){place}"
                return Known(text, machine.graphics.source)
    if isinstance(driver.kernel_module, Known):
        text = f"the NVIDIA kernel module {driver.kernel_module.value} is loaded"
        return Known(text, driver.kernel_module.source)
    if isinstance(driver.state, Known) and driver.state.value in _ANSWERS_OF_A_DRIVER:
        text = f"a driver that answers: {driver.detail or driver.state.value}"
        return Known(text, driver.state.source)
    if isinstance(driver.device_nodes, Known):
        for node in driver.device_nodes.value:
            if node.path.startswith("/dev/nvidia") and node.path[len("/dev/nvidia") :].isdecimal():
                return Known(f"the device node {node.path}", driver.device_nodes.source)
    if isinstance(driver.cuda_library, Known) and driver.cuda_library.value.kind == "wsl":
        return Known("the Windows host's NVIDIA driver", driver.cuda_library.source)
    places: list[Observed[Any]] = [
        machine.graphics,
        driver.state,
        driver.kernel_module,
        driver.device_nodes,
        driver.cuda_library,
    ]
    if not (isinstance(driver.state, Known) and driver.state.value in _WITHOUT_ANSWER):
        places.append(driver.gpus)
    # Each source could have shown a GPU, so its absence is certain only if all were read.
    unseen = (place for place in places if isinstance(place, Unknown))
    return next(unseen, Absent("the PCI bus and the NVIDIA driver"))


_BUILDS_FOR = {"amd": "rocm", "intel": "xpu", "apple": "metal"}
_MAKERS = {"amd": "AMD", "intel": "Intel", "apple": "Apple"}


def usable_gpu(machine: Snapshot) -> Observed[str]:
    """A GPU that can be used here: from NVIDIA, or from a maker that a framework is built for."""
    nvidia, graphics, frameworks = nvidia_gpu(machine), machine.graphics, machine.target.frameworks
    if not (
        isinstance(nvidia, Absent) and isinstance(graphics, Known) and isinstance(frameworks, Known)
    ):
        return nvidia
    kinds = {
        framework.build.kind.value
        for framework in frameworks.value
        if isinstance(framework.build.kind, Known)
    }
    for device in graphics.value:
        if _BUILDS_FOR.get(device.vendor) in kinds:
            return Known(gpu_of_maker(device), graphics.source)
    return nvidia


def gpu_of_maker(device: GraphicsDevice) -> str:
    """a GPU of AMD at 0000:03:00.0."""
    place = f" at {device.address}" if device.address else ""
    return f"a GPU of {_MAKERS[device.vendor]}{place}"


def devices_of(machine: Snapshot, maker: str) -> tuple[GraphicsDevice, ...]:
    """The graphics devices on the bus by this maker: nvidia, amd, intel."""
    devices = machine.graphics.value if isinstance(machine.graphics, Known) else ()
    return tuple(device for device in devices if device.vendor == maker)


def gpu_for(machine: Snapshot, framework: Framework) -> Observed[str]:
    """The GPU that a framework could use: from NVIDIA, else from the maker that it is built for."""
    nvidia, graphics, kind = nvidia_gpu(machine), machine.graphics, framework.build.kind
    if not isinstance(nvidia, Absent) or not isinstance(graphics, Known):
        return nvidia
    if not isinstance(kind, Known):
        return nvidia
    for device in graphics.value:
        if _BUILDS_FOR.get(device.vendor) == kind.value:
            return Known(gpu_of_maker(device), graphics.source)
    return nvidia


_FROM_OUTSIDE = ("SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT", "SIGXCPU")
MORE_TIME = "give it more time: whygpu check --timeout 600"


def stopped_from_outside(probe: Probe) -> bool:
    """Whether somebody else, or a limit of this shell, ended it. That says nothing about the
    framework.

    SIGKILL is excluded: the kernel sends it if a process needs more memory than there is.
    """
    return probe.ended == "signal" and probe.how in _FROM_OUTSIDE


def gpu_proven_by(probe: Probe) -> bool:
    """Whether the framework computed correctly on a GPU and then finished."""
    return probe.ended == "finished" and any(
        operation.kind == "gpu"
        and isinstance(operation.ran_on, Known)
        and isinstance(operation.correct, Known)
        and operation.correct.value
        for operation in probe.operations
    )


def keras_backend(machine: Snapshot, framework: Framework) -> Observed[str]:
    """The backend of Keras: the one that its probe saw, else the configured one."""
    probe = machine.probe("keras")
    if isinstance(probe, Known):
        seen = probe.value.fact("backend")
        if seen:
            return Known(seen, probe.source)
    if framework.keras is None:
        return Absent(f"{framework.name} has no backends")
    return framework.keras.backend


def gpu_at(machine: Snapshot, address: str) -> str:
    """The GPU at a PCI address without function, as a user knows it: "GPU 3", or by its address."""
    gpus = machine.driver.gpus
    for gpu in gpus.value if isinstance(gpus, Known) else ():
        if gpu.pci_address.startswith(address):
            return f"GPU {gpu.number}"
    return f"the GPU at {address}"
