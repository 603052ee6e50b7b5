"""Intel GPUs as the kernel's files show them. None was recorded on a machine with such a GPU."""

from __future__ import annotations

from typing import Any

from tests.collectors.transcripts import host, node
from whygpu.collectors import intel
from whygpu.model.driver import GraphicsDevice
from whygpu.model.intel_driver import IntelDriver
from whygpu.model.observed import Absent, Known, Observed, Unknown

CARD = GraphicsDevice("intel", "0000:03:00.0", "56a0", Known("i915", "driver"))
OF_NVIDIA = GraphicsDevice("nvidia", "0000:01:00.0", "2684", Known("nvidia", "driver"))
BUS: Observed[tuple[GraphicsDevice, ...]] = Known((OF_NVIDIA, CARD), "bus")
DRM = "list /sys/bus/pci/devices/0000:03:00.0/drm"


def driver(answers: dict[str, Any]) -> IntelDriver:
    found = intel.collect(host(answers), BUS)
    assert isinstance(found, Known)
    return found.value


def test_only_the_files_of_intel_gpus_count() -> None:
    answers = {
        DRM: ("card1", "renderD129"),
        "stat /dev/dri/renderD129": node("/dev/dri/renderD129", usable=False, group="render"),
    }
    nodes = driver(answers).device_nodes
    assert isinstance(nodes, Known)
    assert [(item.path, item.usable) for item in nodes.value] == [("/dev/dri/renderD129", False)]


def test_a_gpu_without_a_file_and_a_container_without_the_file() -> None:
    assert driver({}).device_nodes == Absent("a render node below /sys/bus/pci/devices/*/drm")
    assert driver({DRM: ("renderD128",)}).device_nodes == Absent("/dev/dri/renderD*")
    denied = Unknown("permission denied")
    assert driver({DRM: denied}).device_nodes == denied


def test_the_driver_for_level_zero() -> None:
    assert isinstance(driver({}).level_zero, Absent)
    path = "/usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1"
    assert driver({f"stat {path}": node(path)}).level_zero == Known(path, path)


def test_other_machines_are_not_searched() -> None:
    assert isinstance(intel.collect(host({}), Known((OF_NVIDIA,), "bus")), Absent)
    assert isinstance(intel.collect(host({}), Absent("bus")), Absent)
    assert isinstance(intel.collect(host({}), Unknown("no sysfs")), Unknown)
    assert isinstance(intel.collect(host({}, system="Windows"), BUS), Unknown)
