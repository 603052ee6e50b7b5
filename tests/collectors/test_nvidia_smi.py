"""nvidia-smi as the way out where NVML cannot be asked."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.collectors.transcripts import HUNG, host, printed
from whygpu.collectors import nvidia_smi
from whygpu.collectors.driver_answer import DriverAnswer, GpuIds
from whygpu.model.observed import Absent, Known, Unknown

ASK = f"run {' '.join(nvidia_smi.command())}"
ASK_OLD = f"run {' '.join(nvidia_smi.command(nvidia_smi.OLD_FIELDS))}"
ASK_OLDEST = f"run {' '.join(nvidia_smi.command(nvidia_smi.OLDEST_FIELDS))}"
MIB = 1 << 20

# As printed by driver 580.159.04, but for the identifiers.
H200 = "580.159.04, GPU-1, NVIDIA H200, 00000000:00:06.0, 143771, 5, Default, 0, Disabled, 9.0\n"
GEFORCE = (
    "470.57.02, GPU-2, NVIDIA GeForce GTX 1080, 00000000:0A:00.0, 8192, [Unknown Error], "
    "Exclusive_Process, [N/A], [N/A]\n"
)


def ask(answers: dict[str, object]) -> DriverAnswer:
    machine = host(answers)
    found = nvidia_smi.ask(machine, timeout=1)
    machine.assert_consumed()
    assert found is not None
    return found


def test_a_gpu_as_the_query_prints_it() -> None:
    found = ask({ASK: printed(H200)})
    assert found.state == Known("working", nvidia_smi.SOURCE)
    assert found.version == Known("580.159.04", nvidia_smi.SOURCE)
    assert isinstance(found.cuda, Unknown)
    assert found.ids == (GpuIds("GPU-1"),)
    assert isinstance(found.gpus, Known)
    (gpu,) = found.gpus.value
    assert (gpu.name, gpu.pci_address) == ("NVIDIA H200", "0000:00:06.0")
    assert gpu.compute_capability == Known("9.0", nvidia_smi.SOURCE)
    assert gpu.memory_total_bytes == Known(143771 * MIB, nvidia_smi.SOURCE)
    assert gpu.mig == Known(False, nvidia_smi.SOURCE)
    assert isinstance(gpu.processes, Unknown)


def test_an_old_driver_is_asked_for_less() -> None:
    refused = printed('Field "compute_cap" is not a valid field to query.\n', code=2)
    found = ask({ASK: refused, ASK_OLD: printed(GEFORCE)})
    assert isinstance(found.gpus, Known)
    (gpu,) = found.gpus.value
    assert isinstance(gpu.compute_capability, Unknown)
    assert isinstance(gpu.memory_used_bytes, Unknown)
    assert isinstance(gpu.ecc_uncorrected, Absent)
    assert gpu.compute_mode == Known("exclusive", nvidia_smi.SOURCE)


def test_a_driver_before_mig_is_asked_for_even_less() -> None:
    refused = printed('Field "mig.mode.current" is not a valid field to query.\n', code=2)
    row = "390.157, GPU-3, GeForce GTX 1080, 00000000:0A:00.0, 8119, 9, Default, [Not Supported]\n"
    found = ask({ASK: refused, ASK_OLD: refused, ASK_OLDEST: printed(row)})
    assert found.version == Known("390.157", nvidia_smi.SOURCE)
    assert isinstance(found.gpus, Known)
    (gpu,) = found.gpus.value
    assert gpu.mig == Known(False, nvidia_smi.SOURCE)
    assert isinstance(gpu.ecc_uncorrected, Absent)


def test_what_is_not_told_about_mig_is_not_taken_for_off() -> None:
    found = ask({ASK: printed(H200.replace("Disabled", "[Unknown Error]"))})
    assert isinstance(found.gpus, Known)
    assert isinstance(found.gpus.value[0].mig, Unknown)


def test_an_answer_of_another_program_of_that_name_is_no_answer() -> None:
    assert ask({ASK: printed("x" * 200_000)}).state == Known("failed", nvidia_smi.SOURCE)
    endless = ask({ASK: printed(H200.replace("143771", "9" * 5000))})
    assert isinstance(endless.gpus, Known)
    assert isinstance(endless.gpus.value[0].memory_total_bytes, Unknown)


@each(
    ("text", "state"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make "
            "sure that the latest NVIDIA driver is installed and running.",
            "not-loaded",
        ),
        ("Failed to initialize NVML: Driver/library version mismatch", "mismatched"),
        ("Failed to initialize NVML: Insufficient Permissions", "denied"),
        ("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "missing"),
        (
            "Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost.  Reboot the "
            "system to recover this GPU",
            "lost",
        ),
        ("Failed to initialize NVML: Unknown Error", "failed"),
    ],
)
def test_what_it_says_when_it_fails(text: str, state: str) -> None:
    found = ask({ASK: printed(text + "\n\n", code=9)})
    assert found.state == Known(state, nvidia_smi.SOURCE)
    assert found.detail.startswith(text[:30])
    assert isinstance(found.gpus, Unknown)


def test_no_devices() -> None:
    found = ask({ASK: printed("No devices were found\n", code=6)})
    assert found.state == Known("working", nvidia_smi.SOURCE)
    assert found.gpus == Known((), nvidia_smi.SOURCE)


def test_it_hangs_like_nvml_does() -> None:
    assert ask({ASK: HUNG}).state == Known("hung", nvidia_smi.SOURCE)


@pytest.mark.parametrize("output", ["", "580.1, GPU-1\n", "a banner\n"])
def test_an_answer_that_cannot_be_read_is_no_answer(output: str) -> None:
    found = ask({ASK: printed(output)})
    assert found.state == Known("failed", nvidia_smi.SOURCE)
    assert isinstance(found.gpus, Unknown)


def test_there_is_no_nvidia_smi() -> None:
    assert nvidia_smi.ask(host({ASK: Absent("nvidia-smi")}), timeout=1) is None
