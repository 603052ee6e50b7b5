"""Versions in logs: each kind of software has its own sentence for it."""

from __future__ import annotations

from tests.cases import each
from whygpu.readers.log import read_text


@each(
    ("line", "of", "version"),
    [
        ("libcuda reported version is: 455.23.5", "driver", "455.23.5"),
        ("| NVIDIA-SMI 470.86   Driver Version: 470.86   CUDA Version: 11.4", "driver", "470.86"),
        ("Driver Version: 470.86       CUDA Version: 11.4", "cuda-of-driver", "11.4"),
        ("Nvidia driver version: 535.129.03", "driver", "535.129.03"),
        ("kernel version 367.44 does not match DSO version 352.99", "kernel-module", "367.44"),
        ("kernel version 367.44.0 does not match DSO version 352.99.0", "driver", "352.99.0"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  352.63  Sat Nov  7", "kernel-module",
         "352.63"),
        ("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01  Release Build",
         "kernel-module", "570.158.01"),
        ("Cuda compilation tools, release 10.0, V10.0.130", "cuda", "10.0"),
        ("tensorflow-gpu==1.12.0", "tensorflow", "1.12.0"),
    ],
)  # fmt: skip
def test_each_says_it_in_its_own_way(line: str, of: str, version: str) -> None:
    assert read_text(line).version_of(of) == version


def test_the_first_one_that_is_told_counts() -> None:
    log = read_text("Driver Version: 470.86\nDriver Version: 535.54.03")
    assert log.version_of("driver") == "470.86"
    assert [seen.version for seen in log.versions] == ["470.86", "535.54.03"]
