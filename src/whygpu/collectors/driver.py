"""The NVIDIA driver: its files, and its answers within a time limit."""

from __future__ import annotations

from whygpu.collectors import driver_files as files
from whygpu.collectors import gpu_processes, nvidia_smi, nvml
from whygpu.collectors.driver_answer import DriverAnswer, GpuIds
from whygpu.collectors.main_memory_gpus import with_main_memory
from whygpu.host.base import Host
from whygpu.model.driver import DeviceNode, Driver, DriverLibrary, Gpu
from whygpu.model.observed import Absent, Known, Observed, Unknown

TIME_LIMIT = 10.0
"""Seconds to wait for the driver. Waking several GPUs takes a few; a hung driver never answers."""


def collect(host: Host, *, timeout: float = TIME_LIMIT) -> tuple[Driver, tuple[GpuIds, ...]]:
    """The driver, and the identifiers of its GPUs for environment.collect(). Those stay private."""
    nvml_library = files.describe_library(host, files.find_library(host, "libnvidia-ml.so.1"))
    module = files.kernel_module(host)
    nodes = files.device_nodes(host)
    answer = _explained(_ask(host, nvml_library, module, nodes, timeout), module, nodes)
    kernel_module = _hidden_module(answer, module)
    driver = Driver(
        state=answer.state,
        detail=answer.detail,
        version=_version(answer, nvml_library, module),
        cuda=answer.cuda,
        kernel_module=kernel_module,
        uvm=files.uvm(host, kernel_module),
        cuda_library=files.describe_library(host, files.find_library(host, "libcuda.so.1")),
        nvml_library=nvml_library,
        device_nodes=nodes,
        gpus=gpu_processes.described(host, with_main_memory(host, _named(host, answer))),
        pairs=answer.pairs,
    )
    return driver, answer.ids


def _ask(
    host: Host,
    library: Observed[DriverLibrary],
    module: Observed[str],
    nodes: Observed[tuple[DeviceNode, ...]],
    timeout: float,
) -> DriverAnswer:
    # Without library, module and device nodes no driver can answer.
    traces = (library, module, nodes)
    if host.platform.system != "Windows" and all(isinstance(trace, Absent) for trace in traces):
        return _no_driver()
    try:
        answer = nvml.ask(host, timeout=timeout)
    except nvml.NotAsked as reason:
        unasked = Unknown(f"NVML could not be queried: {reason}")
        fallback = nvidia_smi.ask(host, timeout=timeout)
        return fallback or DriverAnswer(unasked, str(reason), unasked, unasked, unasked)
    if answer.state == Known("missing", nvml.SOURCE):
        # nvidia-smi may find a library that the loader does not find (NixOS).
        fallback = nvidia_smi.ask(host, timeout=timeout)
        if fallback and fallback.state == Known("working", nvidia_smi.SOURCE):
            return fallback
    return answer


def _no_driver() -> DriverAnswer:
    nothing = Absent("NVIDIA driver")
    return DriverAnswer(
        state=Known("missing", "driver library, kernel module and device nodes"),
        detail="",
        version=nothing,
        cuda=nothing,
        gpus=nothing,
        pairs=nothing,
    )


def _explained(
    answer: DriverAnswer, module: Observed[str], nodes: Observed[tuple[DeviceNode, ...]]
) -> DriverAnswer:
    """NVML says "not loaded" if it cannot open the control node; the files show why."""
    if answer.state != Known("not-loaded", nvml.SOURCE) or not isinstance(module, Known):
        return answer
    if not isinstance(nodes, Known):
        why = f"kernel module {module.value} is loaded, but its device nodes are not here"
        return answer._replace(state=Known("failed", nvml.SOURCE), detail=f"{answer.detail}: {why}")
    closed = [node for node in nodes.value if node.path == files.CONTROL_NODE and not node.usable]
    if closed:
        why = f"{closed[0].path} is {closed[0].mode}, group {closed[0].group}"
        return answer._replace(state=Known("denied", "/dev"), detail=f"{answer.detail}: {why}")
    why = f"kernel module {module.value} is loaded"
    return answer._replace(state=Known("failed", nvml.SOURCE), detail=f"{answer.detail}, but {why}")


def _version(
    answer: DriverAnswer, library: Observed[DriverLibrary], module: Observed[str]
) -> Observed[str]:
    """The driver's version. If the driver does not answer, its module's version counts."""
    if not isinstance(answer.version, Unknown):
        return answer.version
    if answer.state == Known("mismatched", nvml.SOURCE):
        parts = (library.value.version if isinstance(library, Known) else library, module)
        seen = [part.value if isinstance(part, Known) else "unknown" for part in parts]
        return Unknown(f"library {seen[0]} and kernel module {seen[1]} differ")
    return module if isinstance(module, Known) else answer.version


def _hidden_module(answer: DriverAnswer, module: Observed[str]) -> Observed[str]:
    """A sandbox may hide the module's files, but a driver that answers has a module."""
    answers = isinstance(answer.gpus, Known)
    if (
        answers
        and isinstance(module, Absent)
        and not module.source.startswith(("WSL", files.WINDOWS))
    ):
        return Unknown("the driver answers, but its kernel module's files are not visible here")
    return module


def _named(host: Host, answer: DriverAnswer) -> Observed[tuple[Gpu, ...]]:
    """Fill in from /proc what a lost GPU does not report. Both lists are in bus order."""
    gpus = answer.gpus
    if not isinstance(gpus, Known) or all(gpu.pci_address for gpu in gpus.value):
        return gpus
    addresses = host.list(files.PROC_GPUS)
    if not isinstance(addresses, Known) or len(addresses.value) != len(gpus.value):
        return gpus
    pairs = zip(gpus.value, addresses.value, strict=True)
    return Known(tuple(_from_proc(host, gpu, address) for gpu, address in pairs), gpus.source)


def _from_proc(host: Host, gpu: Gpu, address: str) -> Gpu:
    if gpu.pci_address:
        return gpu
    text = host.read(f"{files.PROC_GPUS}/{address}/information")
    lines = text.value.splitlines() if isinstance(text, Known) else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("Model:")]
    return gpu._replace(pci_address=address, name=models[0] if models else gpu.name)
