"""Whether a log was written on another machine than the examined one."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.log_cuda_start import story_of
from whygpu.causes.evidence.log_machines import platform_in
from whygpu.model.derived import and_list, nvidia_gpu
from whygpu.model.log import Log
from whygpu.model.observed import Absent, Known
from whygpu.model.snapshot import Snapshot
from whygpu.tables.versions import release_numbers

_SYSTEMS = {"linux": "Linux", "windows": "Windows", "macos": "macOS", "darwin": "macOS"}
_MAKERS = re.compile(r"\b(?:NVIDIA|Corporation|GeForce|Tesla|Quadro)\b|[^A-Za-z0-9]+")
_OTHER_MAKERS = re.compile(
    r"\b(?:AMD|ATI|Radeon|Instinct|gfx\d|Intel|Arc|Apple|TPU|CPU)", re.IGNORECASE
)
_CUT = re.compile(r"\.{2,3}$")
"""nvidia-smi shortens long names."""
_ENOUGH = 4
"""Letters of a shortened name that say which GPU it is."""


def other_machine(log: Log, machine: Snapshot) -> tuple[str, ...]:
    """What the log shows of its machine that this one does not have; empty if they may be one."""
    return (*_other_system(log, machine), *_other_gpu(log, machine), *_other_driver(log, machine))


def _other_system(log: Log, machine: Snapshot) -> Iterator[str]:
    there, here = _SYSTEMS.get(log.platform), _SYSTEMS.get(machine.system.os)
    if there and here and there != here:
        yield f"it was written on {there}, and this machine runs {here}"
    elif story_of(log).place == "wsl" and isinstance(machine.system.wsl, Absent):
        yield "it was written under WSL, and this machine does not run under WSL"
    elif platform_in(log) == "linux_aarch64" and machine.system.cpu.architecture == "x86_64":
        yield "it was written on a Jetson, and this machine has an x86_64 processor"


def _other_gpu(log: Log, machine: Snapshot) -> Iterator[str]:
    names = [device.name for device in log.devices if _is_known_nvidia(device.name)]
    if not names:
        return
    gpus = machine.driver.gpus
    if isinstance(gpus, Known) and gpus.value:
        if not any(_same(name, gpu.name) for name in names for gpu in gpus.value):
            mine = and_list(sorted({gpu.name for gpu in gpus.value}))
            yield f"it shows {names[0]}, and this machine has {mine}"
    elif isinstance(nvidia_gpu(machine), Absent):
        yield f"it shows {names[0]}, and this machine has no NVIDIA GPU"


def _is_known_nvidia(name: str) -> bool:
    """Not a GPU of another maker, which a machine may have beside, or instead of, NVIDIA's."""
    return len(_plain(name)) >= _ENOUGH and not _OTHER_MAKERS.search(name)


def _plain(name: str) -> str:
    return _MAKERS.sub("", _CUT.sub("", name)).lower()


def _same(name: str, other: str) -> bool:
    """Whether two names may be of one model: either may be shortened, or lack its memory size."""
    first, second = _plain(name), _plain(other)
    return first.startswith(second) or second.startswith(first)


def _other_driver(log: Log, machine: Snapshot) -> Iterator[str]:
    driver = machine.driver
    here = [
        version.value
        for version in (driver.version, driver.kernel_module)
        if isinstance(version, Known)
    ]
    there = [seen.version for seen in log.versions if seen.of in ("driver", "kernel-module")]
    if here and there and not any(_may_be_same(one, other) for one in here for other in there):
        mine = driver.version if isinstance(driver.version, Known) else driver.kernel_module
        if isinstance(mine, Known):
            yield f"its NVIDIA driver is {there[0]}, and this machine's is {mine.value}"


def _may_be_same(one: str, other: str) -> bool:
    """Some programs write 470.57.2 for 470.57.02, and others write only the first numbers."""
    pairs = zip(release_numbers(one), release_numbers(other), strict=False)
    return all(first == second for first, second in pairs)
