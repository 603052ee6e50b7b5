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
        ("windows 10, tf version 2.16.1, cuda 11.8", "tensorflow", "2.16.1"),
        ("tensorflow-intel             2.13.0", "tensorflow", "2.13.0"),
        ("torch            2.4.1+cpu", "torch", "2.4.1"),
        ("PyTorch 2.0.1+cu118 with CUDA 1108 (you have 2.1.0+cpu)", "torch", "2.1.0"),
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


@each(
    ("lines", "of", "expected"),
    [
        (("Found existing installation: torch 2.0.1", "Uninstalling torch-2.0.1:"), "torch", []),
        (("Collecting torch==2.0.1", "Successfully installed torch-2.3.0"), "torch", ["2.3.0"]),
        (("torch==1.13.1", "Successfully installed numpy-1.26 torch-2.3.0"), "torch", ["2.3.0"]),
        (
            ("xformers 0.0.20 requires torch==2.0.1, but you have torch 2.1.0 which is too new.",),
            "torch",
            ["2.1.0"],
        ),
        (("torch==1.13.1", ">>> torch.__version__", "'2.3.0+cu121'"), "torch", ["2.3.0"]),
        (("print(tf.__version__)", "2.13.0"), "tensorflow", ["2.13.0"]),
        (("np.__version__: 1.26.4",), "numpy", ["1.26.4"]),
        (("print(torch.__version__)", "a 1", "b 2", "c 3", "d 4", "9.9.9"), "torch", []),
        # Only a version alone answers.
        (("print(torch.__version__)", "loaded 12.1 of it"), "torch", []),
        (("torch==1.13.1", "torch==2.3.0"), "torch", ["1.13.1", "2.3.0"]),
    ],
)
def test_a_version_that_was_replaced_or_only_considered_is_not_in_use(
    lines: tuple[str, ...], of: str, expected: list[str]
) -> None:
    log = read_text("\n".join(lines))
    assert [seen.version for seen in log.versions if seen.of == of] == expected


@each(
    ("line", "version"),
    [
        (r'File "C:\Users\li\AppData\Local\Programs\Python\Python310\lib\site.py"', "3.10"),
        (r'File "C:\Python39\lib\site.py", line 3', "3.9"),
        (r"C:\Users\li\AppData\Local\Programs\Python\Python38-32\python.exe", "3.8"),
        ("Python 3.12.4 (tags/v3.12.4:8e8a4ba, Jun  6 2024) [MSC v.1940 64 bit (AMD64)]", "3.12.4"),
        ("Python 3.10.13 | packaged by conda-forge | (main, Dec 23 2023) [GCC 12.3.0]", "3.10.13"),
        ("Python 3.8.10", "3.8.10"),
        ("Python 3.8.10 or newer is required", None),
        ("requires Python 3.8.10", None),
    ],
)
def test_the_python_of_a_path_or_of_its_own_first_line(line: str, version: str | None) -> None:
    assert read_text(line).version_of("python") == version


@each(
    ("text", "of", "version"),
    [
        ("* **TensorFlow version (use command below)**: 1.7.0", "tensorflow", "1.7.0"),
        ("- TensorFlow version (or commit): v2.4.0-49-g0123456 2.4.1", "tensorflow", "2.4.0"),
        ("### TensorFlow version\n\ntf 2.9\n\n### Custom code\n\nno", "tensorflow", "2.9"),
        ("### Tensorflow Version\nv2.18.0-rc2-4-g0123456789a", "tensorflow", "2.18.0"),
        ("### PyTorch version\n\n2.1.0+cu121", "torch", "2.1.0"),
        ("### Python version\n\nPython 3.10.10", "python", "3.10.10"),
        ("### TensorFlow version\n\nnightly\n\n### Python version\n3.9", "tensorflow", None),
    ],
)
def test_the_forms_of_issue_trackers(text: str, of: str, version: str | None) -> None:
    assert read_text(text).version_of(of) == version
