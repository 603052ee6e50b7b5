"""This TensorFlow release has no GPU support on native Windows.

## Why it happens

TensorFlow 2.10 was the last release that used a GPU on native Windows. From 2.11 on the Windows
packages are built for the CPU only, whatever CUDA installation the machine has.

## What it looks like

The list of GPUs is empty, and recent releases print `TensorFlow GPU support is not available on
native Windows for TensorFlow >= 2.11`.

## Fix

Run TensorFlow in WSL2, where the Linux packages use the Windows driver. Or use 2.10 with an old
Python, or another framework that supports Windows, such as PyTorch.

## Fires on (machine)

```toml
only = ["tensorflow"]
[system]
os = "windows"
```

## Quiet on (machine)

```toml
only = ["tensorflow"]
[system]
os = "windows"
[target.frameworks.tensorflow]
version = "2.10.1"
```

## Cannot tell on (machine)

```toml
[system]
os = "windows"
[target.frameworks]
unknown = "the target does not start"
```

## Fires on (log)

```
WARNING:tensorflow:TensorFlow GPU support is not available on native Windows for TensorFlow >= 2.11. Even if CUDA/cuDNN are installed, GPU will not be used. Please use WSL2 or the TensorFlow-DirectML plugin.
```

```
PS C:\\work> python -c "import tensorflow as tf; print(tf.__version__)"
TensorFlow version: 2.15.0
Num GPUs Available:  0
```

```
OS Platform and Distribution: Windows 11
TensorFlow Version: 2.16.1
Is GPU Available: []
```

Somebody describes it:

```
I have tensorflow 2.15 on Windows 11 with an RTX 3060, but tf.config.list_physical_devices('GPU') gives []. Why?
```

## Quiet on (log)

```
I run tensorflow 2.15 in Docker on Windows 11, and it does not detect my GPU.
```

```
PS C:\\work> python check.py
TensorFlow version: 2.10.1
Num GPUs Available:  1
```

## Sources

- <https://www.tensorflow.org/install/pip#windows-native>
- <https://www.tensorflow.org/install/pip#windows-wsl2>
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.framework_builds import titled
from whygpu.causes.evidence.log_subjects import failed_elsewhere, framework_title, subject_of
from whygpu.causes.evidence.own_words import complaints, of_a_gpu_in_use
from whygpu.causes.evidence.packages import package_named
from whygpu.model.cause import cause
from whygpu.model.derived import nvidia_gpu
from whygpu.model.finding import Evidence, Finding, Gap, Remedy, seen
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import need
from whygpu.model.remedy import Install, command_line
from whygpu.model.snapshot import Snapshot
from whygpu.tables.concepts import concepts_of
from whygpu.tables.topics_told import SEES_NONE
from whygpu.tables.versions import release_numbers

CAUSE = cause(
    "WG317",
    __name__,
    __doc__,
    severity="error",
    effect="cpu",
    explains=(
        "cpu-only-build",
        "gpu-unused",
        "gpu-index-unchecked",
        "device-placement-nonexistent",
        "device-placement-no-gpu-kernel",
    ),
)

_FIRST_WITHOUT_GPU = (2, 11)
_DIRECTML = "tensorflow-directml-plugin"
"""Microsoft's GPU plugin, for TensorFlow 2.10; no longer developed."""


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    if machine.system.os != "windows":
        return
    gpu = nvidia_gpu(machine)
    need(gpu)
    framework = need(machine.framework("tensorflow"))
    if release_numbers(framework.version) < _FIRST_WITHOUT_GPU:
        return
    if package_named(machine, _DIRECTML) is not None:
        return
    yield CAUSE.finding(
        subject="tensorflow",
        message=(
            f"{titled(framework)} does not use a GPU on native Windows; 2.10 was the last "
            "release that did"
        ),
        evidence=(
            Evidence("machine", "operating system", f"Windows {machine.system.kernel}"),
            seen(machine.target.frameworks, titled(framework)),
            seen(gpu),
        ),
        remedies=(
            Remedy(
                "Use WSL2: install it, then TensorFlow for Linux inside it.",
                command_line("wsl --install"),
            ),
            Remedy(
                "Or, with Python 3.10 or older and CUDA 11.2 with cuDNN 8.1, install 2.10.",
                Install(("tensorflow<2.11", "numpy<2")),
            ),
        ),
    )


STATEMENTS = late(r"GPU support is not available on native Windows for TensorFlow")
_NO_GPU = late(
    r"Num GPUs(?: Available)?\W{1,4}0\b|list_physical_devices\('GPU'\)\)?[\s#]{1,4}\[\]|^\[\]$"
    r"|is_buil[dt]_with_cuda\(\)\)?[^\n]{0,12}[Ff]alse|GPU is (?:not available|NOT AVAILABLE)"
    r"|No GPU (?:found|available|detected)|GPU [Aa]vailable\W{1,4}(?:\[\]|False|0\b)"
    r"|device_type: \"CPU\"(?![\s\S]{0,2000}device_type: \"GPU\")"
    r"|\[PhysicalDevice\(name='/physical_device:CPU:0', device_type='CPU'\)\]",
    re.MULTILINE,
)
_ELSEWHERE = late(r"/home/|/usr/|/mnt/|WSL|(?i:\bdocker\b|\bcontainer\b|\bubuntu|\bcolab\b)")
_WINDOWS = late(r"\b[Ww]in(?:dows)? ?1[01](?![0-9A-Za-z])")
_VERSION = late(
    r"[Tt]ensor ?[Ff]low [Vv]ersion(?: \([^)\n]{0,60}\)| is)?\W{1,12}(?:tf )?v?(?P<version>\d\.\d{1,2}[.\d]{0,4})"
)
"""As in a bug report form, where the answer is on the next line."""
_FIRST_WITHOUT = (2, 11)


def _sees_none(log: Log) -> list[int]:
    """The first line with an empty list of GPUs, or in which a person says that it is empty."""
    shown = log.first(_NO_GPU)
    if shown is not None:
        return [shown.line]
    reported = [report.line for report in log.without_gpu() if report.says == "no-gpu"]
    return reported[:1] or complaints(log, SEES_NONE)[:1]


def _names_windows(log: Log, lines: list[int]) -> bool:
    return any("windows" in concepts_of(log.line(line).text) for line in lines)


def _of_a_person(log: Log) -> list[int]:
    """Where somebody complains or asks, with Windows in the sentence, and no output tells more."""
    if log.failures or log.progress:
        return []
    said = ((line, concepts_of(log.line(line).text)) for line in of_a_gpu_in_use(log))
    return [line for line, words in said if "windows" in words and words & {"gpu", "cpu", "slow"}][
        :1
    ]


def _looks_for_cuda(log: Log) -> bool:
    """Only builds with code for CUDA look for its DLLs: the release that is told is not the one
    that ran."""
    asked = (*log.library_events("not-found", _CUDA), *log.library_events("opened", _CUDA))
    return any(event.library.endswith(".dll") for event in asked)


_CUDA = ("cudart", "cublas", "cublasLt", "cudnn")


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    statement = log.first(STATEMENTS)
    stated = log.first(_VERSION)
    version = log.version_of("tensorflow") or (stated.groups["version"] if stated else None)
    if statement is None and (
        version is None
        or release_numbers(version)[:2] < _FIRST_WITHOUT
        or log.says(_ELSEWHERE)
        or _looks_for_cuda(log)
    ):
        return
    sees_none = _sees_none(log)
    on_windows = log.platform == "windows" or log.says(_WINDOWS) or _names_windows(log, sees_none)
    lines = [*((statement.line,) if statement else ()), *(sees_none if on_windows else ())]
    told = [] if lines else _of_a_person(log)
    if not (lines or told):
        return
    lines = lines or told
    unrelated = failed_elsewhere(log, min(lines))
    yield CAUSE.finding(
        subject=subject_of(log),
        severity="info" if unrelated else None,
        message=f"{framework_title(log)} runs on native Windows, where TensorFlow has had no GPU "
        "support since 2.11, whatever CUDA is installed",
        evidence=log.evidence(*lines),
        remedies=(
            Remedy("Run it inside WSL2.", command_line("wsl --install")),
            Remedy(
                "Or use TensorFlow 2.10 with CUDA 11.2 and cuDNN 8.1 (Python 3.7 to 3.10).",
                Install(("tensorflow==2.10.*", "numpy<2")),
            ),
        ),
        confidence="certain" if statement else "possible" if told else "likely",
        ask=None if not told else "Does TensorFlow run on Windows itself, or in WSL2?",
    )
