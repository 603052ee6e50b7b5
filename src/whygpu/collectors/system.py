"""Collects the System: processor, C library, distribution, WSL, memory and container."""

from __future__ import annotations

import re

from whygpu.collectors import container, memory
from whygpu.host.base import Host
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.system import Cpu, Libc, OperatingSystem, System

OPERATING_SYSTEMS: dict[str, OperatingSystem] = {
    "Linux": "linux",
    "Darwin": "darwin",
    "Windows": "windows",
}

FIRST_PROCESSOR = 1 << 13
"""Bytes of /proc/cpuinfo that contain the first processor. The kernel generates the text on demand,
so reading all processors takes longer."""

INSTRUCTION_SETS = re.compile(
    r"sse4_[12]|ssse3|avx2?|fma|f16c|bmi[12]|avx512\w+|avx_vnni|amx_\w+"  # x86
    r"|asimd\w*|fphp|sve\w*|bf16|i8mm|sme(?!p)\w*"  # Arm
)


def collect(host: Host) -> System:
    platform = host.platform
    return System(
        os=OPERATING_SYSTEMS.get(platform.system, "other"),
        kernel=platform.kernel,
        distribution=_distribution(host),
        libc=_libc(host),
        cpu=processor(host),
        memory=memory.collect(host),
        wsl=_wsl(host),
        container=container.collect(host),
    )


def processor(host: Host) -> Cpu:
    platform = host.platform
    model, instruction_sets = _linux_cpu(host) if platform.system == "Linux" else _other_cpu(host)
    return Cpu(platform.machine, model, instruction_sets, platform.cores)


def _linux_cpu(host: Host) -> tuple[Observed[str], Observed[tuple[str, ...]]]:
    text = host.read("/proc/cpuinfo", FIRST_PROCESSOR, whole=False)
    if isinstance(text, Unknown):
        return text, text
    if isinstance(text, Absent):
        reason = Unknown("/proc/cpuinfo does not exist")
        return reason, reason
    fields = _first_processor(text.value)
    source = text.source
    model = fields.get("model name") or fields.get("Model")
    flags = fields.get("flags") or fields.get("Features")
    return (
        Known(model, source) if model else Absent(f"model name in {source}"),
        Known(tuple(sorted(filter(INSTRUCTION_SETS.fullmatch, flags.split()))), source)
        if flags
        else Unknown(f"{source} lists no processor flags"),
    )


def _first_processor(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon:
            fields.setdefault(name.strip(), value.strip())
    return fields


def _other_cpu(host: Host) -> tuple[Observed[str], Observed[tuple[str, ...]]]:
    system = host.platform.system
    flags = Unknown(f"the processor's flags are read on Linux only; this is {system}")
    if system != "Darwin":
        return Unknown(f"the processor's name is not read on {system}"), flags
    return apple_chip(host), flags


def apple_chip(host: Host) -> Observed[str]:
    """The processor's name on macOS, which on Apple silicon also names the GPU."""
    answer = host.run(("sysctl", "-n", "machdep.cpu.brand_string"), timeout=2)
    if not isinstance(answer, Known):
        return Unknown("sysctl cannot be run")
    name = answer.value.stdout.strip()
    return Known(name, "sysctl") if name else Unknown("sysctl does not report the processor's name")


def _libc(host: Host) -> Observed[Libc]:
    platform = host.platform
    name, _, version = platform.libc.partition(" ")
    if name == "glibc":
        return Known(Libc("glibc", version), "the C library")
    if name == "musl":
        return Known(Libc("musl", version), "the C library")
    if name:
        return Known(Libc("other", platform.libc), "the C library")
    if platform.system != "Linux":
        return Absent(f"{platform.system} has no glibc")
    loader = f"/lib/ld-musl-{platform.machine}.so.1"
    if isinstance(host.stat(loader), Known):
        return Known(Libc("musl", ""), loader)
    return Unknown("the C library does not report its name")


def _distribution(host: Host) -> Observed[str]:
    if host.platform.system != "Linux":
        return Absent(f"{host.platform.system} is not a Linux distribution")
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        text = host.read(path)
        if isinstance(text, Known):
            name = re.search(r'^PRETTY_NAME=(["\']?)(.+)\1$', text.value, re.MULTILINE)
            return Known(name[2], path) if name else Unknown(f"{path} has no PRETTY_NAME")
        if isinstance(text, Unknown):
            return text
    return Absent("/etc/os-release")


def _wsl(host: Host) -> Observed[int]:
    kernel = host.platform.kernel
    source = "the kernel's release"
    if "microsoft" not in kernel.lower():
        return Absent(source)
    # WSL 1 translates system calls and calls itself 4.4.0-19041-Microsoft.
    return Known(1 if kernel.endswith("-Microsoft") else 2, source)
