"""Logs of installations that failed: the reason that whygpu gives, and its command."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import command_of, explained
from whygpu.causes.evidence.log_installs import environment_of
from whygpu.model.finding import Finding
from whygpu.readers.log import read_text


def found(log: str) -> Finding:
    (finding,) = explained(log).root_causes
    assert finding.code == "WG318"
    return finding


def commands(finding: Finding) -> list[str]:
    return [command for remedy in finding.remedies if (command := command_of(remedy))]


def pip(requirement: str, offered: str = "none", around: str = "") -> str:
    return (
        f"{around}\nERROR: Could not find a version that satisfies the requirement {requirement} "
        f"(from versions: {offered})\nERROR: No matching distribution found for {requirement}\n"
    )


PIP_LISTS = "1.13.0, 1.13.1, 2.0.0, 2.0.1, 2.1.0, 2.1.1, 2.1.2, 2.2.0, 2.2.1, 2.2.2"
BANNER_32 = "Python 3.7.4 (v3.7.4, Jul  8 2019) [MSC v.1916 32 bit (Intel)] on win32\nC:\\> pip"
UV = "  x No solution found when resolving dependencies:\n  Because "
POETRY = (
    "  - Installing torch: Failed\n  Unable to find installation candidates for torch (2.7.1)\n"
)


@pytest.mark.parametrize(
    ("log", "message", "command"),
    [
        (
            pip("tensorflow==2.12.0", "2.16.1, 2.17.0", "$ python3.12 -m pip install"),
            "Python 3.12 is too new for tensorflow==2.12.0: there are builds for Python 3.8 to",
            "uv venv --python 3.11",
        ),
        (
            pip("tensorflow==2.12.0", "2.16.0rc0, 2.16.1, 2.17.0"),
            "Python 3.12 (known from the list of offered releases) is too new",
            "uv venv --python 3.11",
        ),
        (
            # The log mentions another Python than the one that these releases are for.
            pip("tensorflow==2.12.0", "2.16.1, 2.17.0", "/usr/lib/python3.6/site-packages"),
            "Python 3.12 (known from the list of offered releases) is too new",
            "uv venv --python 3.11",
        ),
        (
            pip("tensorflow==2.20.0", "2.5.0, 2.6.0, 2.7.0", "Python 3.8.10\n"),
            "Python 3.8 is too old for tensorflow==2.20.0",
            "uv venv --python 3.13",
        ),
        (
            pip("torch==1.8.1+cu111", "1.13.0, 1.13.1, 2.0.0, 2.0.1"),
            "Python 3.11 (known from the list of offered releases) is too new",
            "uv venv --python 3.9",
        ),
        (
            "ERROR: Ignored the following versions that require a different python version: "
            "2.13.0 Requires-Python >=3.8,<3.12\n" + pip("tensorflow==2.13.0", "2.16.1, 2.17.0"),
            "is too new for tensorflow==2.13.0: it requires Python >=3.8,<3.12",
            "uv venv --python 3.11",
        ),
        (
            "ERROR: Package 'jax' requires a different Python: 3.8.10 not in '>=3.9'",
            "Python 3.8 is too old for jax: it requires Python >=3.9",
            "uv venv --python 3.12",
        ),
        (
            f"{UV}torch==2.2.2 has no wheels with a matching Python\n      ABI tag (e.g., `cp313`) "
            "and you require torch==2.2.2\n      hint: Wheels are available for `torch` on the "
            "following\n      platforms: `manylinux1_x86_64`,\n      `macosx_11_0_arm64`",
            "Python 3.13 is too new for torch==2.2.2",
            "uv venv --python 3.12",
        ),
        (
            f"{POETRY}  - 24 wheel(s) were skipped as your project's environment does not support "
            "the identified abi tags",
            "torch==2.7.1 has no build for the Python that poetry installs for",
            "uv venv --python 3.13",
        ),
        (
            pip("tensorflow", around=BANNER_32),
            "32-bit build of Python, and tensorflow has builds for 64-bit systems only",
            "uv venv --python 3.13",
        ),
        (
            pip("torch==2.1.0", around="$ pypy3 -m pip install torch==2.1.0"),
            "this is PyPy, and torch==2.1.0 has builds for CPython only",
            "uv venv --python 3.11",
        ),
        (
            f"{UV}tensorflow==2.20.0 has no wheels with a matching Python ABI tag (e.g., `cp313t`)",
            "the free-threaded build of Python",
            "uv venv --python 3.13",
        ),
        (
            f"{UV}tensorflow==2.20.0 has no wheels with a free-threading compatible ABI tag",
            "which needs its own wheels, and tensorflow==2.20.0 has none for it",
            "uv venv --python 3.13",
        ),
        (
            # PyPI was searched as well, so the index that does not exist is not the reason.
            pip(
                "torch==2.0.1",
                "2.2.0, 2.2.1",
                "$ python3.12 -m pip install torch==2.0.1 "
                "--extra-index-url https://download.pytorch.org/whl/cu125",
            ),
            "Python 3.12 is too new for torch==2.0.1",
            "uv venv --python 3.11",
        ),
        (
            pip("torch==2.3.0", PIP_LISTS),
            "torch==2.3.0 has no build for macOS on Intel (known from the list",
            "python -m pip install torch==2.2.2 'numpy<2'",
        ),
        (
            pip(
                "tensorflow==2.8.0", "2.13.0, 2.13.1, 2.14.0, 2.15.0", "jo@Jos-MacBook-Pro ~ % pip"
            ),
            "tensorflow==2.8.0 has no build for macOS on Apple silicon",
            "python -m pip install tensorflow==2.21.0",
        ),
        (
            pip("onnxruntime-gpu==1.16.0", around="jo@Jos-MacBook-Pro ~ % pip"),
            "onnxruntime-gpu==1.16.0 does not exist for macOS",
            "python -m pip install onnxruntime",
        ),
        (
            "$ uv pip install torch==2.1.0+cu121 --index-url https://download.pytorch.org/whl/cu118\n"
            f"{UV}there is no version of torch==2.1.0+cu121 and you require torch==2.1.0+cu121",
            "the index that was searched has no torch==2.1.0+cu121",
            "python -m pip install torch==2.1.0 --index-url https://download.pytorch.org/whl/cu121",
        ),
        (
            "$ uv pip install --index-url https://download.pytorch.org/whl/cu121 torch==2.6.0\n"
            f"{UV}only torch<=2.5.1+cu121 is available and\n      you require torch==2.6.0, we can",
            "no build of torch==2.6.0 for CUDA 12.1",
            "python -m pip install torch==2.6.0 --index-url https://download.pytorch.org/whl/cu118",
        ),
        (
            pip("torch==1.6.0", "1.7.0, 1.7.1"),
            "has no build for Windows (known from the list of offered releases) on PyPI",
            "python -m pip install torch==1.6.0+cu102 "
            "-f https://download.pytorch.org/whl/torch_stable.html",
        ),
        (
            f"{UV}torch==2.3.1 has no wheels with a matching platform tag (e.g., "
            "`macosx_13_0_x86_64`)",
            "torch==2.3.1 has no build for macOS on Intel",
            "python -m pip install torch==2.2.2 'numpy<2'",
        ),
        (
            pip("torch==1.13.1+cu117", "1.12.1, 1.13.1", "/Users/ann/env/bin/python -m pip"),
            "builds with +cu117 in their version are for Linux and Windows only",
            "python -m pip install torch",
        ),
        (
            pip("tensorflow-gpu", around="ann@Anns-MacBook-Pro ~ % pip install tensorflow-gpu"),
            "tensorflow-gpu does not exist for macOS, because CUDA does not",
            "python -m pip install tensorflow",
        ),
        (
            pip(
                "torch==2.4.0", around="Looking in indexes: https://download.pytorch.org/whl/cu125"
            ),
            "PyTorch has no index cu125",
            "python -m pip install torch==2.4.0 --index-url https://download.pytorch.org/whl/cu124",
        ),
        (
            pip(
                "torch==2.3.0",
                "2.0.0+cu117, 2.0.1+cu117",
                "Looking in indexes: https://download.pytorch.org/whl/cu117",
            ),
            "no build of torch==2.3.0 for CUDA 11.7 (cu117); its CUDA builds are cu118 and cu121",
            "python -m pip install torch==2.3.0 --index-url https://download.pytorch.org/whl/cu118",
        ),
        (
            pip("torch==1.8.1+cu111", "1.7.1, 1.8.0, 1.8.1, 1.9.0"),
            "CUDA builds are on a separate index",
            "python -m pip install torch==1.8.1+cu111 "
            "-f https://download.pytorch.org/whl/torch_stable.html",
        ),
        (
            'Exception: You tried to install "pytorch". The package named for PyTorch is "torch"',
            "the package to install with pip is torch, not pytorch",
            "python -m pip install torch==2.15.0 --index-url https://download.pytorch.org/whl/cu132",
        ),
        (
            pip("cudnn"),
            "the package to install with pip is nvidia-cudnn-cu12, not cudnn",
            "python -m pip install nvidia-cudnn-cu12",
        ),
        (
            "  Could not find a version that satisfies the requirement tensorflow==2.3.0 (from "
            "versions: 1.13.1, 1.14.0)\nYou are using pip version 18.1, however version 20.2.2 is "
            "available.\n/home/bob",
            "pip 18.1 is too old",
            "python -m pip install --upgrade pip",
        ),
    ],
)
def test_the_reason_is_shown_by_the_log(log: str, message: str, command: str) -> None:
    finding = found(log)
    assert message in finding.message
    assert finding.confidence == "certain"
    assert command in commands(finding)


@each(
    ("log", "message"),
    [
        (
            pip("tensorflow==2.9.0", around="Linux raspberrypi 5.10 armv7l GNU/Linux"),
            "has builds for 64-bit systems only",
        ),
        (pip("torch==2.1.0", around="/ # apk add py3-pip"), "this system uses musl"),
        (
            pip("torch==1.8.1+cu111", "1.8.1", "nvidia@jetson:~$ uname -m\naarch64 GNU/Linux"),
            "no CUDA build of torch==1.8.1 for Linux on aarch64",
        ),
        (
            pip("nvidia-nccl-cu12==2.16.5", "0.0.1.dev5", "PS C:\\work> pip"),
            "nvidia-nccl-cu12==2.16.5 has no build for Windows",
        ),
        (
            pip("nvidia-cublas-cu12", around="ann@Mac-mini ~ % pip"),
            "does not exist for macOS, because CUDA does not",
        ),
        (
            pip("tensorflow==2.9.0", around="Linux jetson 4.9.253-tegra aarch64 GNU/Linux"),
            "tensorflow==2.9.0 has no build for Linux on aarch64",
        ),
        (pip("tensorflow-gpu==2.13.0", "2.12.0"), "tensorflow-gpu no longer exists"),
        (pip("tensorflow==2.4.9", "2.4.0, 2.4.1, 2.5.0"), "there is no release 2.4.9"),
        (
            "C:\\> pip install x\nERROR: torch-1.8.0+cu111-cp38-cp38-linux_x86_64.whl is not a "
            "supported wheel on this platform.",
            "is for Python 3.8 and Linux on x86_64, and this is another system",
        ),
        (
            "tensorflow_gpu-1.0.0-cp35-cp35m-win_x86_64.whl is not a supported wheel on this "
            "platform.",
            "wheels for 64-bit Windows have win_amd64",
        ),
        (
            "ERROR: HTTP error 404 while getting https://example.org/"
            "tensorflow_gpu-1.4.0-cp37-cp37m-linux_x86_64.whl",
            "the server has no file",
        ),
        (
            "WARNING: tensorflow 2.13.0 does not provide the extra 'and-cuda'",
            "the releases 2.14.0 to 2.21.0 have it",
        ),
        (
            "Because no versions of tensorflow match >2.20.0,<3.0.0\n and tensorflow (2.20.0) "
            "requires Python >=3.9,<3.14, tensorflow is forbidden.\nversion solving failed.",
            "it requires Python >=3.9,<3.14",
        ),
    ],
)
def test_reasons_without_a_command_for_this_machine(log: str, message: str) -> None:
    finding = found(log)
    assert message in finding.message
    assert finding.confidence == "certain"


@each(
    ("log", "message"),
    [
        (pip("tensorflow"), "the log does not show whether"),
        (pip("tensorflow-text==2.8.2"), "the log does not show whether"),
        (
            "ERROR: jaxlib-0.3.14-cp38-none-manylinux2014_x86_64.whl is not a supported wheel on "
            "this platform.",
            "at least one of these is different here; the log does not show which",
        ),
        (
            pip(
                "torch==2.0.1",
                "2.2.0+cu118",
                "Looking in indexes: https://download.pytorch.org/whl/cu118",
            ),
            "the Python that runs pip probably is too new for it",
        ),
        (pip("jax[gpu]>=0.3.4", "0.1, 0.2.17"), "probably is too old for it"),
        (pip("tensorflow-gpuu"), "tensorflow-gpu has a very similar name"),
        (pip("tensorflow==2.99", "2.20.0"), "newer than every release that whygpu knows"),
        (
            f"{UV}there is no version of torch==2.5.1+cu121 and you require torch==2.5.1+cu121",
            "judging by the log",
        ),
        (
            pip(
                'nvidia-nccl-cu12==2.16.5; extra == "and-cuda" (from tensorflow[and-cuda])',
                "0.0.1.dev5",
            ),
            "has no build for Windows or macOS",
        ),
        (pip("torchvision==0.15.2", "0.20.0", "Python 3.13.1"), "Python 3.13 is too new"),
    ],
)
def test_what_the_log_does_not_decide_is_not_certain(log: str, message: str) -> None:
    finding = found(log)
    assert message in finding.message
    assert finding.confidence == "likely"


SOLVING = "LibMambaUnsatisfiableError: Encountered problems while solving:\n  - "


@each(
    ("log", "cause", "message"),
    [
        (
            f"{SOLVING}nothing provides __cuda needed by tensorflow-2.10.0-cuda112py310he87a039_0",
            "no-nvidia-driver",
            "conda sees no NVIDIA driver on this machine",
        ),
        (
            "error    libmamba Could not solve for environment specs\n    The following packages "
            "are incompatible\n    └─ pytorch 2.0.1 would require\n       └─ __cuda >=11.8 , which "
            "is missing on the system.",
            "wheel-not-available",
            "there is none, or it is older",
        ),
        (
            "Error: Cannot install environment 'default'\n╰─▶ Virtual package '__cuda' does not "
            "match any of the available virtual packages on your machine: [__unix=0=0]",
            "no-nvidia-driver",
            "pixi sees no NVIDIA driver",
        ),
        (
            "╰─▶ Cannot solve the request because of: jaxlib * cuda cannot be installed because "
            "there are no viable options:\n└─ jaxlib 0.5.2 would require\n   └─ __cuda *, for "
            "which no candidates were found.",
            "wheel-not-available",
            "the manifest does not declare CUDA as a system requirement",
        ),
        (
            "UnsatisfiableError: The following specifications were found to be incompatible with "
            "your system:\n\n  - feature:/linux-64::__cuda==10.1=0\n  - cudatoolkit=11.3 -> "
            "__cuda[version='>=11.0']\n\nYour installed version is: 10.1",
            "driver-too-old-for-cuda",
            "the NVIDIA driver supports CUDA up to 10.1, and cudatoolkit needs >=11.0",
        ),
        (
            f"{SOLVING}nothing provides __glibc >=2.28,<3.0.a0 needed by pytorch-2.5.1-cuda126_0",
            "glibc-too-old",
            "the environment needs glibc >=2.28",
        ),
        (
            "UnsatisfiableError: The following specifications were found to be in conflict:\n"
            "  - cudatoolkit 10.1*\n  - pytorch 1.1.0* -> cudatoolkit >=10.0.130,<10.1.0a0\n",
            "wheel-not-available",
            "needs cudatoolkit >=10.0.130,<10.1.0a0, but cudatoolkit 10.1* was requested",
        ),
        (
            "PackagesNotFoundError: The following packages are not available from current "
            "channels:\n\n  - cudatoolkit=12.1\n",
            "wheel-not-available",
            "conda's cudatoolkit ends with 11.8",
        ),
        (
            "PackagesNotFoundError: The following packages are not available from current "
            "channels:\n\n  - pytorch==2.6.0\n\nCurrent channels:\n\n"
            "  - https://conda.anaconda.org/pytorch/linux-64\n",
            "wheel-not-available",
            "the channel pytorch has no pytorch==2.6.0",
        ),
        (
            "ResolvePackageNotFound: \n  - cudatoolkit=11.3.1=h59b3ba6_10\n",
            "wheel-not-available",
            "the environment file was made on another system",
        ),
        (
            "Could not solve for environment specs\n├─ pytorch-cuda 12.1** does not exist (perhaps "
            "a typo or a missing channel);\n",
            "wheel-not-available",
            "none of the channels that conda searched has pytorch-cuda",
        ),
        (
            f"{SOLVING}package pytorch-2.1.0-py3.11_cuda12.1_0 requires python >=3.11,<3.12, but "
            "none of the providers can be installed",
            "wheel-not-available",
            "requires python >=3.11,<3.12",
        ),
    ],
)
def test_conda_has_its_own_reasons(log: str, cause: str, message: str) -> None:
    finding = found(log)
    assert finding.cause == cause
    assert message in finding.message
    assert "pip" not in finding.message


def test_the_older_solver_lists_a_driver_that_is_new_enough() -> None:
    finding = found(
        "UnsatisfiableError: The following specifications were found to be incompatible with your "
        "system:\n\n  - feature:/linux-64::__cuda==12.2=0\n  - cudatoolkit=11.3 -> "
        "__cuda[version='>=11.0']\n\nYour installed version is: 12.2"
    )
    assert finding.cause == "wheel-not-available"
    assert "driver" not in finding.message


def test_the_driver_of_another_machine_can_be_declared() -> None:
    log = f"{SOLVING}nothing provides __cuda needed by tensorflow-2.10.0-cuda112py310he87a039_0"
    assert "export CONDA_OVERRIDE_CUDA=11.2" in commands(found(log))


def test_no_release_is_proposed_that_this_python_cannot_install() -> None:
    finding = found(pip("tensorflow", around="Python 3.14.0 (main)"))
    assert commands(finding) == ["uv venv --python 3.13"]


def test_a_mac_is_not_offered_what_it_lacks() -> None:
    finding = found(pip("torch==2.3.0", PIP_LISTS))
    assert not [text for text in commands(finding) if "torch==2.15.0" in text]


@each(
    "failure",
    [
        "error sending request for url (https://pypi.org/simple/torch/)",
        "CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://repo.anaconda.com>",
        "Max retries exceeded with url: /simple/torch/ (Caused by ProxyError('Cannot connect'))",
    ],
)
def test_an_index_that_was_not_reached_lacks_nothing(failure: str) -> None:
    assert not explained(f"{failure}\n{pip('torch')}").root_causes


@each(
    ("text", "field", "value"),
    [
        ("Using CPython 3.13.1", "python", "3.13"),
        ("C:\\Python312\\python.exe", "python", "3.12"),
        ("py -3.10 -m pip install torch", "python", "3.10"),
        ("python3.9 -m pip\npython3.11 -m pip", "python", ""),
        ("~/.local/pipx/venvs/poetry/lib/python3.13/site-packages/x.py", "python", ""),
        ("tensorflow requires Python >=3.9", "python", ""),
        ("[MSC v.1933 64 bit (AMD64)] on win32", "python_build", ""),
        ("torch-2.0-cp311-cp311-macosx_11_0_arm64.whl", "system", ""),
        ("/mnt/c/Users/ann and /home/ann", "system", "linux"),
        ("/c/Users/ann", "system", ""),
        ('torch; platform_system == "Darwin"', "system", ""),
        ("dpkg --add-architecture i386", "python_build", ""),
        ("https://conda.anaconda.org/conda-forge/osx-arm64", "machine", "arm64"),
        ("You are using pip version 9.0.1, however", "pip", "9.0.1"),
    ],
)
def test_the_environment_that_a_log_shows(text: str, field: str, value: str) -> None:
    assert getattr(environment_of(read_text(text)), field) == value
