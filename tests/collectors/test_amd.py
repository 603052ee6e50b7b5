"""AMD GPUs as the kernel's files show them.

The files follow the kernel's source (drivers/gpu/drm/amd/amdkfd/kfd_topology.c). None was recorded
on a machine with such a GPU.
"""

from __future__ import annotations

from typing import Any

from tests.cases import each
from tests.collectors.transcripts import host, node
from whygpu.collectors import amd
from whygpu.model.amd_driver import AmdDriver, AmdGpu
from whygpu.model.driver import GraphicsDevice
from whygpu.model.observed import Absent, Known, Observed, Unknown

CARD = GraphicsDevice("amd", "0000:03:00.0", "744c", Known("amdgpu", "driver"))
BUS: Observed[tuple[GraphicsDevice, ...]] = Known((CARD,), "bus")

PROCESSOR = "cpu_cores_count 16\nsimd_count 0\nvendor_id 0\ngfx_target_version 0\n"
GPU = "cpu_cores_count 0\nsimd_count 192\nvendor_id 4098\ndevice_id 29772\ngfx_target_version {}\n"


def topology(*properties: str) -> dict[str, Any]:
    answers: dict[str, Any] = {f"list {amd.TOPOLOGY}": tuple(map(str, range(len(properties))))}
    for number, text in enumerate(properties):
        answers[f"read {amd.TOPOLOGY}/{number}/properties"] = text
    return answers


def driver(answers: dict[str, Any]) -> AmdDriver:
    found = amd.collect(host(answers), BUS)
    assert isinstance(found, Known)
    return found.value


@each(
    ("number", "target"),
    [
        (90010, "gfx90a"),
        (90402, "gfx942"),
        (100302, "gfx1032"),
        (110000, "gfx1100"),
        (120001, "gfx1201"),
    ],
)
def test_the_target_of_a_gpu(number: int, target: str) -> None:
    gpus = driver(topology(PROCESSOR, GPU.format(number))).gpus
    assert gpus == Known((AmdGpu(1, target),), amd.TOPOLOGY)


def test_several_gpus_are_in_the_order_of_the_kernel() -> None:
    texts = [PROCESSOR, *(GPU.format(90010) for _ in range(10)), GPU.format(110000)]
    gpus = driver(topology(*texts)).gpus
    assert isinstance(gpus, Known)
    assert [gpu.node for gpu in gpus.value] == list(range(1, 12))
    assert gpus.value[-1].target == "gfx1100"


def test_a_kernel_without_the_compute_driver_has_no_gpu_for_rocm() -> None:
    assert isinstance(driver({}).gpus, Absent)
    assert isinstance(driver(topology(PROCESSOR)).gpus, Absent)


def test_a_gpu_that_the_kernel_does_not_describe_is_unknown() -> None:
    answers = topology(PROCESSOR, GPU.format(110000))
    refused = Unknown("Operation not permitted")
    answers[f"read {amd.TOPOLOGY}/1/properties"] = refused
    assert driver(answers).gpus == refused
    old = driver(topology("simd_count 192\n")).gpus
    assert isinstance(old, Unknown)
    assert "older kernels" in old.reason


def test_who_may_open_the_device_files() -> None:
    answers = {
        "list /dev/dri": ("by-path", "card0", "renderD128"),
        "stat /dev/kfd": node("/dev/kfd", usable=False, mode="crw-rw----", group="render"),
        "stat /dev/dri/renderD128": node("/dev/dri/renderD128", group="render"),
    }
    nodes = driver(answers).device_nodes
    assert isinstance(nodes, Known)
    assert [(item.path, item.usable) for item in nodes.value] == [
        ("/dev/kfd", False),
        ("/dev/dri/renderD128", True),
    ]


def test_a_container_without_device_files() -> None:
    assert driver({}).device_nodes == Absent("/dev/kfd, /dev/dri/renderD*")


def test_a_folder_that_cannot_be_listed_hides_the_files() -> None:
    denied = Unknown("/dev/dri: Permission denied")
    assert driver({"list /dev/dri": denied}).device_nodes == denied


def test_the_release_of_rocm() -> None:
    assert driver({f"read {amd.ROCM_VERSION}": "6.4.1-83\n"}).rocm == Known(
        "6.4.1-83", amd.ROCM_VERSION
    )
    assert isinstance(driver({}).rocm, Absent)


def test_other_machines_are_not_searched() -> None:
    nvidia = GraphicsDevice("nvidia", "0000:03:00.0", "2335", Known("nvidia", "driver"))
    machine = host({})
    assert isinstance(amd.collect(machine, Known((nvidia,), "bus")), Absent)
    assert isinstance(amd.collect(machine, Absent("bus")), Absent)
    assert isinstance(amd.collect(machine, Unknown("no sysfs")), Unknown)
    assert isinstance(amd.collect(host({}, system="Windows"), BUS), Unknown)


def test_a_container_that_may_use_one_gpu_of_several_knows_that_one() -> None:
    answers = topology(PROCESSOR, GPU.format(90402), GPU.format(90402))
    answers[f"read {amd.TOPOLOGY}/1/properties"] = Unknown("Operation not permitted")
    assert driver(answers).gpus == Known((AmdGpu(2, "gfx942"),), amd.TOPOLOGY)
