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


@each(
    ("name", "version", "of", "expected"),
    [
        ("tensorflow", "2.15.0", "tensorflow", "2.15.0"),
        ("tensorflow-gpu", "2.6.0", "tensorflow", "2.6.0"),
        ("tf_nightly", "2.19.0.dev20241201", "tensorflow", "2.19.0.dev20241201"),
        ("torch", "2.1.0+cu118", "torch", "2.1.0"),
        ("Keras", "3.3.3", "keras", "3.3.3"),
        # The other Keras is another module.
        ("tf-keras", "2.16.0", "keras", None),
        ("h5py", "3.11.0 ", "h5py", "3.11.0"),
        ("tensorflow", "unknown", "tensorflow", None),
    ],
)
def test_pip_shows_name_and_version_on_two_lines(
    name: str, version: str, of: str, expected: str | None
) -> None:
    shown = f"Name: {name}\nVersion: {version}\nSummary: It computes.\n"
    assert read_text(shown).version_of(of) == expected


@each(
    "between",
    ["Summary: It computes.", "Home-page: https://example.org/version/1.2"],
)
def test_only_the_line_below_a_name_has_its_version(between: str) -> None:
    assert read_text(f"Name: torch\n{between}\nVersion: 2.1.0\n").version_of("torch") is None


@each("line", ["tensorflow-6.1.0", "tensorflow 22.3"])
def test_what_only_begins_like_tensorflow_is_no_release_of_it(line: str) -> None:
    assert read_text(line).version_of("tensorflow") is None
