"""Graphics hardware, seen without any driver's help."""

from __future__ import annotations

from typing import Any

import pytest

from tests.collectors.transcripts import HUNG, folder, host, printed
from whygpu.collectors import graphics
from whygpu.host.local import LocalHost
from whygpu.model.driver import GraphicsDevice
from whygpu.model.observed import Absent, Known, Unknown

PCI = "/sys/bus/pci/devices"


def bus(*devices: tuple[str, str, str, str]) -> dict[str, Any]:
    """PCI devices as (class, vendor, device, driver)."""
    answers: dict[str, Any] = {}
    for index, (kind, vendor, device, driver) in enumerate(devices):
        path = f"{PCI}/0000:0{index}:00.0"
        answers[f"read {path}/class"] = f"0x{kind}\n"
        if kind[:2] in ("03", "12"):
            answers[f"read {path}/vendor"] = f"0x{vendor}\n"
        if kind[:2] == "03":
            answers[f"read {path}/device"] = f"0x{device}\n"
        if driver:
            answers[f"stat {path}/driver"] = folder(f"/sys/bus/pci/drivers/{driver}")
    answers[f"list {PCI}"] = tuple(f"0000:0{index}:00.0" for index in range(len(devices)))
    return answers


def test_only_graphics_devices_count() -> None:
    machine = host(
        bus(
            ("060000", "8086", "1237", ""),
            ("030000", "1a03", "2000", "ast"),
            ("030200", "10de", "2335", "nvidia"),
        )
    )
    found = graphics.collect(machine)
    assert isinstance(found, Known)
    assert [(d.vendor, d.address, d.device_id) for d in found.value] == [
        ("other", "0000:01:00.0", "2000"),
        ("nvidia", "0000:02:00.0", "2335"),
    ]
    machine.assert_consumed()


def test_hardware_without_a_driver_is_still_hardware() -> None:
    found = graphics.collect(host(bus(("030000", "10de", "1b80", ""))))
    expected = GraphicsDevice(
        "nvidia", "0000:00:00.0", "1b80", Absent(f"{PCI}/0000:00:00.0/driver")
    )
    assert found == Known((expected,), PCI)


def test_the_driver_that_took_the_device_is_named() -> None:
    found = graphics.collect(host(bus(("030000", "10de", "1b80", "nouveau"))))
    assert isinstance(found, Known)
    driver = found.value[0].kernel_driver
    assert isinstance(driver, Known)
    assert driver.value == "nouveau"


def test_vendors() -> None:
    found = graphics.collect(
        host(bus(("030000", "8086", "9a49", "i915"), ("038000", "1002", "740f", "amdgpu")))
    )
    assert isinstance(found, Known)
    assert [device.vendor for device in found.value] == ["intel", "amd"]


def test_an_accelerator_of_amd_is_a_gpu_and_one_of_intel_is_not() -> None:
    answers = bus(("120000", "1002", "74a1", ""), ("120000", "8086", "7d1d", ""))
    answers[f"read {PCI}/0000:00:00.0/device"] = "0x74a1\n"
    found = graphics.collect(host(answers))
    assert isinstance(found, Known)
    assert [device.vendor for device in found.value] == ["amd"]


def test_a_machine_without_a_gpu() -> None:
    assert isinstance(graphics.collect(host(bus(("060000", "8086", "1237", "")))), Absent)


def test_a_machine_without_a_pci_bus_has_no_gpu() -> None:
    assert isinstance(graphics.collect(host({"list /sys/bus": ("cpu", "virtio")})), Absent)


def test_a_sandbox_without_sysfs_does_not_tell() -> None:
    assert isinstance(graphics.collect(host()), Unknown)


def test_jetson() -> None:
    machine = host(
        {
            "read /proc/device-tree/compatible": "nvidia,p3768\0nvidia,tegra234\0",
            "list /sys/bus": ("cpu",),
            "stat /sys/module/nvgpu": folder("/sys/module/nvgpu"),
        },
        machine="aarch64",
    )
    found = graphics.collect(machine)
    assert isinstance(found, Known)
    assert [(device.vendor, device.device_id) for device in found.value] == [("nvidia", "tegra234")]


def test_apple_silicon() -> None:
    answers = {"run sysctl -n machdep.cpu.brand_string": printed("Apple M2 Max\n")}
    found = graphics.collect(host(answers, system="Darwin", machine="arm64"))
    assert isinstance(found, Known)
    assert [(device.vendor, device.device_id) for device in found.value] == [
        ("apple", "Apple M2 Max")
    ]


ON_WINDOWS = f"run {' '.join(graphics.VIDEO_CONTROLLERS)}"


def test_windows_lists_its_adapters() -> None:
    ids = (
        "PCI\\VEN_10DE&DEV_2684&SUBSYS_16F310DE&REV_A1\\4&1FC990D7&0&0008\r\n"
        "PCI\\VEN_8086&DEV_A780&SUBSYS_00000000&REV_04\\3&11583659&0&10\r\n"
        "ROOT\\BASICDISPLAY\\0000\r\n"
    )
    found = graphics.collect(host({ON_WINDOWS: printed(ids)}, system="Windows"))
    assert isinstance(found, Known)
    assert [(device.vendor, device.device_id) for device in found.value] == [
        ("nvidia", "2684"),
        ("intel", "a780"),
    ]


def test_a_windows_whose_adapters_are_not_on_the_bus_has_no_gpu() -> None:
    answer = printed("VMBUS\\{DA0A7802-E377-4AAC-8E77-0558EB1073F8}\\5620E0C7\r\n")
    assert isinstance(graphics.collect(host({ON_WINDOWS: answer}, system="Windows")), Absent)


@pytest.mark.parametrize(
    "answer",
    [printed(""), printed("", code=1, stderr="Access denied"), HUNG, Absent("powershell")],
    ids=["empty", "refused", "hung", "missing"],
)
def test_a_windows_that_does_not_answer_is_no_windows_without_a_gpu(answer: Any) -> None:
    assert isinstance(graphics.collect(host({ON_WINDOWS: answer}, system="Windows")), Unknown)


def test_elsewhere_we_cannot_look() -> None:
    assert isinstance(graphics.collect(host(system="FreeBSD")), Unknown)


def test_this_machine() -> None:
    found = graphics.collect(LocalHost())
    assert not isinstance(found, Known) or all(device.device_id for device in found.value)
