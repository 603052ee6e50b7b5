"""GPUs in logs: every tool has its own way to list them."""

from __future__ import annotations

from tests.cases import each
from whygpu.model.log import Device
from whygpu.readers.log import read_text

GIB = 1 << 30


def devices(log: str) -> tuple[Device, ...]:
    return read_text(log).devices


@each(
    ("log", "name", "capability"),
    [
        ("name: GeForce GTX 980 Ti\nmajor: 5 minor: 2 memoryClockRate (GHz) 1.0", "980 Ti", "5.2"),
        ("name: Tesla K80 major: 3 minor: 7 memoryClockRate(GHz): 0.82", "Tesla K80", "3.7"),
        (
            "  StreamExecutor device (0): GeForce RTX 2080 Ti, Compute Capability 7.5",
            "2080 Ti",
            "7.5",
        ),
        ("  Device 0: NVIDIA GeForce RTX 3090, compute capability 8.6, VMM: yes", "3090", "8.6"),
        ("Found GPU0 GeForce GT 750M which is of cuda capability 3.0.", "750M", "3.0"),
        ("GPU 1: NVIDIA A10 (UUID: GPU-466be1f8-6148-1a27-a450-592604f3df54)", "A10", ""),
        ("GPU models and configuration: GPU 0: NVIDIA A100 80GB PCIe", "A100", ""),
        ("YOLOv5 v6.0 torch 1.9.0+cu111 CUDA:0 (Tesla T4, 15102MiB)", "Tesla T4", ""),
    ],
)
def test_found_ones(log: str, name: str, capability: str) -> None:
    (device,) = devices(log)
    assert device.event == "found"
    assert name in device.name
    assert device.capability == capability


def test_nvidia_smi_has_the_memory_in_the_next_row() -> None:
    (device,) = devices(
        "|   0  Tesla V100-PCIE...  Off  | 00000000:61:00.0 Off |                    0 |\n"
        "| N/A   41C    P0    36W / 250W |   1024MiB / 16384MiB |      0%      Default |"
    )
    assert device.name == "Tesla V100-PCIE..."
    assert (device.memory, device.total) == (15 * GIB, 16 * GIB)


def test_windows_writes_its_driver_model_in_the_row() -> None:
    (device,) = devices(
        "|   0  NVIDIA GeForce ... WDDM  | 00000000:01:00.0  On |                  N/A |"
    )
    assert device.name == "NVIDIA GeForce ..."


def test_a_device_that_the_framework_made_is_ready() -> None:
    (device,) = devices(
        "Created TensorFlow device (/job:localhost/replica:0/task:0/device:GPU:0 with 7439 MB "
        "memory) -> physical GPU (device: 0, name: GeForce GTX 1080, pci bus id: 0000:01:00.0, "
        "compute capability: 6.1)"
    )
    assert (device.event, device.name, device.capability) == ("ready", "GeForce GTX 1080", "6.1")
    assert device.memory == 7439 << 20


def test_a_row_of_another_table_is_no_gpu() -> None:
    assert not devices("|   0  1234  C  python  | 317MiB |\n| 1 | 0.93 | 0000 |")
