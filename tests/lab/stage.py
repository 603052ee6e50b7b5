"""Puts a process on a machine with other hardware: another PCI bus, other files in /proc and /dev.

Run as a program, `stage.py PLAN COMMAND...` mounts what the plan says inside name spaces of its
own (nobody else sees it, no rights are needed where the kernel allows that to users), gives up
every privilege, and becomes the command.
"""

from __future__ import annotations

import ctypes
import functools
import glob
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000
_BIND, _RECURSIVE, _PRIVATE = 0x1000, 0x4000, 0x40000
_DROP_FROM_BOUNDING_SET = 24
_LAST_CAPABILITY = 63

MODULE_TEXT = """\
NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Wed Jul  9 17:13:23 UTC 2025
GCC version:  gcc version 12.3.0 (Ubuntu 12.3.0-1ubuntu1~22.04)
"""

EVERY_NODE: Mapping[str, int] = {
    "nvidia0": 0o666,
    "nvidiactl": 0o666,
    "nvidia-uvm": 0o666,
    "nvidia-uvm-tools": 0o666,
}


@dataclass(frozen=True)
class PciDevice:
    """A device on the bus, as sysfs shows it."""

    vendor: str = "10de"
    device: str = "20b0"
    kind: str = "030200"
    driver: str | None = "nvidia"
    address: str = "0000:01:00.0"


@dataclass(frozen=True)
class Stage:
    """What of the machine is replaced. What is left at its default stays as it is."""

    pci: tuple[PciDevice, ...] | None = None
    module: str | None = None
    """The version of the NVIDIA kernel module that is loaded."""
    uvm: bool = True
    nodes: Mapping[str, int] = field(default_factory=dict)
    """Names below /dev, and their permissions."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Existing files whose text is another one."""
    run: Mapping[str, str] | None = None
    """All that is below /run."""

    def plan(self) -> dict[str, Any]:
        """The mounts, as the program below takes them."""
        folders: dict[str, dict[str, Any]] = {}
        if self.pci is not None:
            folders["/sys/bus/pci/devices"] = _folder(
                files=_bus(self.pci), links=_drivers(self.pci)
            )
        if self.module is not None:
            modules = {"nvidia/version": f"{self.module}\n"}
            if self.uvm:
                modules["nvidia_uvm/refcnt"] = "0\n"
            folders["/sys/module"] = _folder(files=modules)
            text = MODULE_TEXT.format(version=self.module)
            folders["/proc/driver"] = _folder(files={"nvidia/version": text})
        if self.nodes:
            files = dict.fromkeys(self.nodes, "")
            folders["/dev"] = _folder(files=files, modes=self.nodes, keep_all_but="nvidia")
        if self.run is not None:
            folders["/run"] = _folder(files=self.run)
        # A toolkit of the machine that runs this is no part of any scenario.
        for place in ("/usr/local", "/opt"):
            if glob.glob(f"{place}/cuda*"):
                folders[place] = _folder(keep_all_but="cuda")
        return {"folders": folders, "files": dict(self.files)}


def _folder(
    files: Mapping[str, str] = MappingProxyType({}),
    links: Mapping[str, str] = MappingProxyType({}),
    modes: Mapping[str, int] = MappingProxyType({}),
    keep_all_but: str | None = None,
) -> dict[str, Any]:
    """A folder with other content; what was there stays, but for names that begin so."""
    return {
        "files": dict(files),
        "links": dict(links),
        "modes": dict(modes),
        "keep_all_but": keep_all_but,
    }


def _bus(devices: tuple[PciDevice, ...]) -> dict[str, str]:
    return {
        f"{device.address}/{name}": f"0x{text}\n"
        for device in devices
        for name, text in (
            ("vendor", device.vendor),
            ("device", device.device),
            ("class", device.kind),
        )
    }


def _drivers(devices: tuple[PciDevice, ...]) -> dict[str, str]:
    # The link need not lead anywhere: its last part is the driver's name.
    return {
        f"{device.address}/driver": f"../../../../bus/pci/drivers/{device.driver}"
        for device in devices
        if device.driver is not None
    }


def command(stage: Stage, folder: Path) -> list[str]:
    """What to put before a command so that it runs on the stage."""
    plan = folder / "stage.json"
    plan.write_text(json.dumps(stage.plan()))
    return [sys.executable, "-I", "-S", __file__, str(plan)]


@functools.cache
def unavailable(scratch: Path) -> str | None:
    """Why this machine cannot set a stage; None when it can."""
    whole = Stage(pci=(), module="1", nodes={"nvidia0": 0o666}, run={}, files={"/proc/cpuinfo": ""})
    scratch.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([*command(whole, scratch), "true"], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    reason = done.stderr.strip().rpartition("\n")[2]
    return f"the kernel does not let this user set a stage: {reason}"


# --- the program ----------------------------------------------------------------------------------


def _main(plan_file: str, arguments: list[str]) -> None:
    with open(plan_file) as file:
        plan = json.load(file)
    own_files = os.path.dirname(plan_file)
    _enter_name_spaces()
    for path, folder in plan["folders"].items():
        _replace_folder(path, folder)
    for index, (path, text) in enumerate(plan["files"].items()):
        source = os.path.join(own_files, f"stage-file-{index}")
        with open(source, "w") as file:
            file.write(text)
        _mount(source, path, None, _BIND)
    _give_up_privileges()
    os.execvp(arguments[0], arguments)


def _enter_name_spaces() -> None:
    user, group = os.getuid(), os.getgid()
    _check(_libc().unshare(_NEW_USER | _NEW_MOUNTS), "unshare")
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    _mount("none", "/", None, _RECURSIVE | _PRIVATE)


def _replace_folder(path: str, folder: dict[str, Any]) -> None:
    before = os.open(path, os.O_RDONLY)
    # Not open to all: in such a folder the kernel refuses writing to other users' /dev/null.
    _mount("none", path, "tmpfs", 0, "mode=0755")
    if folder["keep_all_but"] is not None:
        for name in os.listdir(before):
            if not name.startswith(folder["keep_all_but"]):
                _bring_over(f"/proc/self/fd/{before}/{name}", f"{path}/{name}")
    for name, text in folder["files"].items():
        file = os.path.join(path, name)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with open(file, "w") as stream:
            stream.write(text)
        os.chmod(file, folder["modes"].get(name, 0o644))
    for name, target in folder["links"].items():
        os.symlink(target, os.path.join(path, name))
    os.close(before)


def _bring_over(source: str, place: str) -> None:
    if os.path.islink(source):
        os.symlink(os.readlink(source), place)
        return
    if os.path.isdir(source):
        os.mkdir(place)
    else:
        open(place, "w").close()
    _mount(source, place, None, _BIND | _RECURSIVE)


def _give_up_privileges() -> None:
    # For root: a program that it starts would get all capabilities back, and every file open.
    for number in range(_LAST_CAPABILITY + 1):
        _libc().prctl(_DROP_FROM_BOUNDING_SET, number, 0, 0, 0)


def _mount(
    source: str, place: str, kind: str | None, flags: int, options: str | None = None
) -> None:
    words = [text and text.encode() for text in (source, place, kind, options)]
    result = _libc().mount(*words[:3], ctypes.c_ulong(flags), words[3])
    _check(result, f"mount {place}")


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2:])
