"""Kernel modules, device nodes and driver libraries, as files."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from tests.cases import each
from tests.collectors.transcripts import file, folder, host, node
from whygpu.collectors import driver_files as files
from whygpu.model.driver import DeviceNode
from whygpu.model.libraries import ElfFacts
from whygpu.model.observed import Absent, Known, Observed, Unknown

OPEN_MODULE = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  "
    "(dvs-builder@U22-I3)  Sun Jul 27 07:00:51 UTC 2025\n"
)


def test_the_open_kernel_module() -> None:
    found = files.kernel_module(host({"read /proc/driver/nvidia/version": OPEN_MODULE}))
    assert found == Known("580.65.06", "/proc/driver/nvidia/version (open kernel module)")


def test_the_module_in_sysfs() -> None:
    found = files.kernel_module(host({"read /sys/module/nvidia/version": "470.57.02\n"}))
    assert found == Known("470.57.02", "/sys/module/nvidia/version")


def test_a_module_whose_version_we_do_not_understand_is_not_absent() -> None:
    machine = host({"read /proc/driver/nvidia/version": "NVRM version: something new\n"})
    assert isinstance(files.kernel_module(machine), Unknown)


LOADED = Known("580.65.06", "test")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"stat /sys/module/nvidia_uvm": folder("x")}, Known(True, "/sys/module/nvidia_uvm")),
        ({"read /proc/devices": "195 nvidia\n510 nvidia-uvm\n"}, Known(True, "transcript")),
        ({"read /proc/devices": "195 nvidia\n195 nvidiactl\n"}, Known(False, "transcript")),
    ],
)
def test_uvm(answers: dict[str, Any], expected: Observed[bool]) -> None:
    assert files.uvm(host(answers), LOADED) == expected


def test_uvm_without_a_trace_is_unknown() -> None:
    assert isinstance(files.uvm(host(), LOADED), Unknown)


def test_uvm_of_no_driver_is_absent() -> None:
    assert isinstance(files.uvm(host(), Absent("test")), Absent)


def test_device_nodes_and_whether_they_can_be_used() -> None:
    closed = node("x", usable=False, mode="crw-rw----", group="video")
    machine = host(
        {
            "list /dev": ("nvidia-caps", "nvidia-fs0", "nvidia0", "nvidia12", "tty"),
            "list /dev/nvidia-caps": ("nvidia-cap1",),
            "stat /dev/nvidia0": closed,
            "stat /dev/nvidia12": node("x"),
            "stat /dev/nvidia-caps/nvidia-cap1": node("x", usable=False, mode="cr--------"),
        }
    )
    assert files.device_nodes(machine) == Known(
        (
            DeviceNode("/dev/nvidia0", "crw-rw----", "video", False),
            DeviceNode("/dev/nvidia12", "crw-rw-rw-", "root", True),
            DeviceNode("/dev/nvidia-caps/nvidia-cap1", "cr--------", "root", False),
        ),
        "/dev",
    )
    machine.assert_consumed()


def test_no_device_nodes() -> None:
    assert isinstance(files.device_nodes(host({"list /dev": ("null",)})), Absent)


def test_a_dev_that_cannot_be_listed_does_not_tell() -> None:
    assert isinstance(files.device_nodes(host()), Unknown)


@each(
    ("path", "real_path", "size", "kind", "version"),
    [
        (
            "/usr/lib64/libcuda.so.1",
            "/usr/lib64/libcuda.so.470.57.02",
            1 << 24,
            "driver",
            "470.57.02",
        ),
        ("/usr/lib64/libcuda.so.1", "/usr/lib64/nvidia/libcuda.so.1.1", 1 << 24, "driver", None),
        (
            "/x/libcuda.so.1",
            "/usr/local/cuda/lib64/stubs/libcuda.so",
            1 << 16,
            "toolkit-stub",
            None,
        ),
        # No version in its name and small: odd, but only its folder says that it is a stub.
        ("/x/libcuda.so.1", "/x/libcuda.so.1", 1 << 16, "driver", None),
        (
            "/usr/local/cuda/compat/libcuda.so.1",
            "/usr/local/cuda-12.4/compat/libcuda.so.550.54.15",
            1 << 24,
            "compat",
            "550.54.15",
        ),
        (
            "/usr/lib/wsl/lib/libcuda.so.1",
            "/usr/lib/wsl/drivers/nv/libcuda.so.1.1",
            99,
            "wsl",
            None,
        ),
    ],
)
def test_what_a_library_is(
    path: str, real_path: str, size: int, kind: str, version: str | None
) -> None:
    machine = host({f"stat {path}": file(real_path, size)})
    found = files.describe_library(machine, Known(path, "test"))
    assert isinstance(found, Known)
    assert (found.value.path, found.value.kind) == (path, kind)
    if version is None:
        assert isinstance(found.value.version, Absent)
    else:
        assert found.value.version == Known(version, real_path)


def cache(*entries: tuple[str, str, int]) -> Any:
    """A loader cache with entries (name, path, flags), as the transcript holds bytes."""
    header = struct.Struct("<20s2IB3xI12x")
    record = struct.Struct("<i3IQ")
    start = header.size + len(entries) * record.size
    strings, records = b"", b""
    for name, path, flags in entries:
        key = start + len(strings)
        strings += name.encode() + b"\0"
        target = start + len(strings)
        strings += path.encode() + b"\0"
        records += record.pack(flags, key, target, 0, 0)
    head = header.pack(b"glibc-ld.so.cache1.1", len(entries), len(strings), 2, 0)
    return base64.b64encode(head + records + strings).decode()


def elf(bits: int) -> ElfFacts:
    return ElfFacts("x86_64", bits, None, (), (), (), None, False, (), ())


NAME = "libcuda.so.1"


def test_the_library_path_comes_before_the_cache() -> None:
    machine = host(
        {
            f"stat /opt/a/{NAME}": file("/opt/a/x"),
            "read_bytes /etc/ld.so.cache": cache((NAME, f"/lib/b/{NAME}", 0x0303)),
        },
        {"LD_LIBRARY_PATH": "/nowhere::/opt/a"},
    )
    assert files.find_library(machine, NAME) == Known(f"/opt/a/{NAME}", f"/opt/a/{NAME}")


def test_the_cache_knows_which_entry_is_for_this_machine() -> None:
    machine = host(
        {
            "read_bytes /etc/ld.so.cache": cache(
                (NAME, f"/lib/i386/{NAME}", 0x0003), (NAME, f"/lib/odd/{NAME}", 0x0303)
            ),
            f"stat /lib/odd/{NAME}": file("x"),
        }
    )
    assert files.find_library(machine, NAME) == Known(f"/lib/odd/{NAME}", f"/lib/odd/{NAME}")
    machine.assert_consumed()


def test_a_library_of_another_class_is_passed_over() -> None:
    machine = host(
        {
            f"stat /opt/32/{NAME}": file("x"),
            f"elf /opt/32/{NAME}": elf(32),
            f"stat /usr/lib64/{NAME}": file("y"),
            f"elf /usr/lib64/{NAME}": elf(64),
        },
        {"LD_LIBRARY_PATH": "/opt/32"},
    )
    assert files.find_library(machine, NAME) == Known(f"/usr/lib64/{NAME}", f"/usr/lib64/{NAME}")
    machine.assert_consumed()


def test_a_copy_where_the_loader_does_not_look_is_mentioned_and_not_found() -> None:
    found = files.find_library(host({f"stat /usr/lib/wsl/lib/{NAME}": file("x")}), NAME)
    assert isinstance(found, Absent)
    assert (
        f"/usr/lib/wsl/lib/{NAME} exists, but the loader does not search that folder"
        in found.source
    )


def test_a_broken_cache_is_passed_over() -> None:
    machine = host({"read_bytes /etc/ld.so.cache": "bGliY3VkYS5zby4x"})  # "libcuda.so.1"
    assert isinstance(files.find_library(machine, NAME), Absent)
