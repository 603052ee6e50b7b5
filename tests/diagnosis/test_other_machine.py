"""A log may come from another machine than the one that is examined with --here."""

from __future__ import annotations

from tests.cases import each
from tests.diagnosis.test_corroboration import here
from tests.kit import machine
from whygpu.diagnosis.other_machine import other_machine
from whygpu.readers.log import read_text

READY = (
    "I gpu_device.cc:1525] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9 MB "
    "memory:  -> device: 0, name: {}, pci bus id: 0000:01:00.0, compute capability: 8.0"
)
SMI = "| NVIDIA-SMI {0}       Driver Version: {0}       CUDA Version: 12.2     |"
NO_GPU = 'start = "no-gpu"'


def differences(log: str, toml: str = "") -> tuple[str, ...]:
    return other_machine(read_text(log), machine(toml))


def _mine() -> tuple[str, str]:
    """The GPU and the driver of the healthy machine of the tests."""
    driver = machine("").driver
    return driver.gpus.value[0].name, driver.version.value  # type: ignore[union-attr]


def test_the_same_machine_has_no_differences() -> None:
    gpu, driver = _mine()
    assert differences(f"{READY.format(gpu)}\n{SMI.format(driver)}") == ()
    # Without the maker, or shortened by nvidia-smi.
    assert differences(READY.format(gpu.removeprefix("NVIDIA "))) == ()
    assert differences(f"|   0  {gpu[:14]}...  Off  | 00000000:61:00.0 Off |") == ()
    assert differences("RuntimeError: No CUDA GPUs are available") == ()
    # Some programs write the first numbers of a driver only.
    assert differences(f"| Driver Version: {driver.rpartition('.')[0]} |") == ()


def test_a_gpu_of_another_maker_says_nothing_about_those_of_nvidia() -> None:
    amd = "found 1 ROCm devices:\n  Device 0: AMD Radeon RX 7900 XTX, compute capability 11.0, VMM"
    assert read_text(amd).devices
    assert differences(amd) == ()
    assert differences(amd, NO_GPU) == ()


@each(
    ("log", "toml", "words"),
    [
        (READY.format("NVIDIA GeForce GT 710"), "", "it shows NVIDIA GeForce GT 710, and this"),
        (READY.format("NVIDIA GeForce GT 710"), NO_GPU, "this machine has no NVIDIA GPU"),
        (SMI.format("440.33.01"), "", "its NVIDIA driver is 440.33.01, and this machine's is"),
        ('  File "C:\\Users\\me\\train.py", line 3', "", "on Windows, and this machine runs Linux"),
        ("Linux pc 5.15.90.1-microsoft-standard-WSL2 x86_64", "", "written under WSL"),
        ("$ cat /etc/nv_tegra_release", "", "written on a Jetson"),
    ],
)
def test_what_this_machine_does_not_have_is_said(log: str, toml: str, words: str) -> None:
    (difference,) = differences(log, toml)
    assert words in difference


def test_the_machine_neither_confirms_nor_refutes_the_log_of_another_one() -> None:
    hidden = """
probes_left_out = "--no-probe"
[environment.visible_gpus]
text = ""
visible = []
ignored = []
"""
    log = f"{SMI.format('440.33.01')}\nRuntimeError: No CUDA GPUs are available\n"
    after = here(log, hidden)
    assert "not compared with this machine" in after.headline
    assert "its NVIDIA driver is 440.33.01" in after.headline
    assert not any("This machine" in root.message for root in after.root_causes)
    assert all(e.kind == "log" for root in after.root_causes for e in root.evidence)
