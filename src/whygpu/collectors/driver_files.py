"""The NVIDIA driver in the file system: kernel modules, device nodes, libraries."""

from __future__ import annotations

import re
from collections.abc import Iterable

from whygpu.host import loader_cache
from whygpu.host.base import FileFacts, Host
from whygpu.model.driver import DeviceNode, DriverLibrary
from whygpu.model.observed import Absent, Known, Observed, Unknown, transform

MODULE_FILE = "/sys/module/nvidia/version"
PROC_FILE = "/proc/driver/nvidia/version"
PROC_GPUS = "/proc/driver/nvidia/gpus"
CONTROL_NODE = "/dev/nvidiactl"
WSL_NODE = "/dev/dxg"

# "NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ..." and, for the open module,
# "NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ...".
KERNEL_MODULE = re.compile(r"(Open )?Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)")

NODE = re.compile(r"nvidia\d+|nvidiactl|nvidia-uvm|nvidia-uvm-tools|nvidia-modeset|dxg")
CAPABILITIES = "/dev/nvidia-caps"

DEFAULT_FOLDERS = (
    "/lib/{machine}-linux-gnu",
    "/usr/lib/{machine}-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
)
OTHER_FOLDERS = ("/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/run/opengl-driver/lib")
"""Where WSL, some clusters and NixOS keep the driver. The loader does not search these folders by
default."""

WINDOWS = "Windows"
"""The beginning of the reason why what the driver has on Linux is absent."""
WINDOWS_NAMES = {"libcuda.so.1": "nvcuda.dll", "libnvidia-ml.so.1": "nvml.dll"}

DRIVER_VERSION = re.compile(r"\.so\.(\d{3,}(?:\.\d+)+)$")


def kernel_module(host: Host) -> Observed[str]:
    if host.platform.system == "Windows":
        return _not_on_windows("kernel modules")
    if isinstance(host.stat(WSL_NODE), Known):
        return Absent("WSL: the kernel's part of the driver runs in Windows, behind /dev/dxg")
    proc = host.read(PROC_FILE)
    if isinstance(proc, Known):
        match = KERNEL_MODULE.search(proc.value)
        if match:
            return Known(match[2], f"{PROC_FILE} (open kernel module)" if match[1] else PROC_FILE)
    module = host.read(MODULE_FILE)
    if isinstance(module, Known):
        return Known(module.value.strip(), MODULE_FILE)
    if isinstance(module, Unknown):
        return module
    if isinstance(proc, Known):
        return Unknown(f"{PROC_FILE} contains no version that whygpu understands")
    return Absent(f"{PROC_FILE}, {MODULE_FILE}")


def uvm(host: Host, module: Observed[str]) -> Observed[bool]:
    folder = "/sys/module/nvidia_uvm"
    if isinstance(module, Absent):
        return Absent(f"{folder}: there is no NVIDIA kernel module that it could belong to")
    if isinstance(host.stat(folder), Known):
        return Known(True, folder)
    devices = host.read("/proc/devices")
    if isinstance(devices, Known):
        return Known(bool(re.search(r" nvidia-uvm$", devices.value, re.MULTILINE)), devices.source)
    return Unknown(f"{folder} does not exist, and /proc/devices cannot be read")


def device_nodes(host: Host) -> Observed[tuple[DeviceNode, ...]]:
    """The GPU's files under /dev; absent if there are none."""
    if host.platform.system == "Windows":
        return _not_on_windows("device nodes")
    names = host.list("/dev")
    if not isinstance(names, Known):
        return Unknown("/dev cannot be listed")
    paths = [f"/dev/{name}" for name in names.value if NODE.fullmatch(name)]
    if "nvidia-caps" in names.value:
        capabilities = host.list(CAPABILITIES)
        if isinstance(capabilities, Known):
            paths += [f"{CAPABILITIES}/{name}" for name in capabilities.value]
    return nodes_at(host, paths, "/dev/nvidia*, /dev/dxg")


def nodes_at(host: Host, paths: Iterable[str], names: str) -> Observed[tuple[DeviceNode, ...]]:
    """The files that exist among these; absent, by these names, if there are none."""
    nodes = [(path, host.stat(path)) for path in paths]
    found = tuple(_node(path, node.value) for path, node in nodes if isinstance(node, Known))
    return Known(found, "/dev") if found else Absent(names)


def _node(path: str, facts: FileFacts) -> DeviceNode:
    return DeviceNode(path, facts.mode, facts.group, facts.usable)


def describe_library(host: Host, found: Observed[str]) -> Observed[DriverLibrary]:
    """Describe a driver library by the file that its name resolves to."""
    if not isinstance(found, Known):
        return found
    facts = host.stat(found.value)
    if not isinstance(facts, Known):
        return Unknown(f"{found.value} was found, but cannot be read")
    return transform(found, lambda path: _library(path, facts.value))


def _library(path: str, facts: FileFacts) -> DriverLibrary:
    real = facts.real_path
    match = DRIVER_VERSION.search(real)
    version = Known(match[1], real) if match else Absent(f"version in the name {real}")
    folders = set(path.split("/")[:-1]) | set(real.split("/")[:-1])
    if "stubs" in folders:
        return DriverLibrary(path, version, "toolkit-stub")
    if "wsl" in folders:
        return DriverLibrary(path, version, "wsl")
    if any(folder == "compat" or folder.startswith("cuda-compat") for folder in folders):
        return DriverLibrary(path, version, "compat")
    return DriverLibrary(path, version, "driver")


def find_library(host: Host, name: str) -> Observed[str]:
    """Where the loader finds a driver library for a program without its own search path."""
    if host.platform.system == "Windows":
        return _system_library(host, WINDOWS_NAMES[name])
    machine = host.platform.machine
    folders = [folder for folder in host.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    paths = [f"{folder}/{name}" for folder in folders]
    paths += _cached(host, name)
    paths += [f"{folder.format(machine=machine)}/{name}" for folder in DEFAULT_FOLDERS]
    for path in paths:
        if isinstance(host.stat(path), Known) and not _is_other_class(host, path):
            return Known(path, path)
    apart = [f"{folder}/{name}" for folder in OTHER_FOLDERS]
    apart = [path for path in apart if isinstance(host.stat(path), Known)]
    note = f"; {apart[0]} exists, but the loader does not search that folder" if apart else ""
    return Absent(f"{name} in LD_LIBRARY_PATH, the loader's cache and the default folders{note}")


def _system_library(host: Host, name: str) -> Observed[str]:
    folder = host.environ.get("SYSTEMROOT", r"C:\Windows")
    path = rf"{folder}\System32\{name}"
    facts = host.stat(path)
    return Known(path, path) if isinstance(facts, Known) else facts


def _not_on_windows(what: str) -> Absent:
    return Absent(f"{WINDOWS}: it has no {what}")


def _cached(host: Host, name: str) -> list[str]:
    content = host.read_bytes("/etc/ld.so.cache")
    # Parsing takes longer than all the rest, and most machines without a GPU do not need it.
    if not isinstance(content, Known) or name.encode() not in content.value:
        return []
    try:
        entries = loader_cache.parse(content.value)
    except loader_cache.BadCache:
        return []
    flags = loader_cache.FLAGS.get((host.platform.machine, 64))
    return [entry.path for entry in entries if entry.name == name and entry.flags == flags]


def _is_other_class(host: Host, path: str) -> bool:
    """Whether it is a 32-bit library, which the loader skips. The loader does not skip a broken
    file."""
    elf = host.elf(path)
    return isinstance(elf, Known) and elf.value.bits != 64
