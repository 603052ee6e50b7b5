"""What a program reports about its devices: no GPU, a GPU, the CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.model.log import DeviceReport, DeviceWord, Line

_NO = r"(?:False\b|No\b|None\b|0\b|\[\])"
_GAP = r"['\"]?[ ?:=>-]{1,8}"
_WORDS: tuple[tuple[DeviceWord, re.Pattern[str]], ...] = (
    (
        "gpu-unused",
        # Lightning, in both of its forms.
        re.compile(
            r"\bGPU available: True[^\n]{0,40}, used: False|\bGPU (?:is )?available,? but not used"
        ),
    ),
    (
        "no-gpu",
        re.compile(
            r"(?<!\w)(?:CUDA|GPU)s?(?: devices?)?(?: (?:is|are|was|were))?"
            rf"[ _](?:available|enabled|found|detected|usable|support){_GAP}{_NO}"
            # Not with a plain number, which is the number of the GPU.
            r"|(?<!\w)(?:CUDA|GPU)s?(?: devices?)?['\"]? ?[:=] ?(?:False\b|None\b|\[\])"
            rf"|is_available\(\){_GAP}False\b|is_gpu_available\([^)\n]{{0,40}}\){_GAP}False\b"
            rf"|(?:physical|logical)_devices\(['\"]GPU['\"]\){_GAP}\[\]"
            rf"|(?<!\w)(?:num(?:ber)?|#|count)(?:[ _]of)?[ _](?:\w{{1,12}}[ _]){{0,2}}GPUs?"
            rf"(?:[ _]\w{{1,12}}){{0,2}}{_GAP}0\b|(?<!\w)n_gpus?{_GAP}0\b"
            rf"|device_count\(\){_GAP}0\b"
            r"|\b0 (?:physical|logical|available|visible) GPUs?\b|\b0 GPUs\b"
            r"|\b[Ff]ound 0 (?:CUDA|GPU)|\bCUDA (?:is |was )?(?:not available|unavailable)\b"
            r"|\b[Nn]o (?:CUDA |NVIDIA |compatible |usable )?GPUs?(?:/TPU)? "
            r"(?:(?:is|are|was|were) )?(?:found|detected|available|discovered)"
            r"|\b(?:CUDA|GPU) (?:is |was )?not (?:available|found|detected|enabled)\b"
            r"|\bdid not (?:find|detect|see) (?:a|any) GPUs?\b"
            r"|\b[Pp]lease install GPU version of T(?:F|ensor[Ff]low)\b"
            r"|^device_type: \"CPU\"$"
            r"|\bGPU will not be used\b|Device mapping: no known devices",
            re.IGNORECASE,
        ),
    ),
    (
        "on-cpu",
        re.compile(
            r"(?<![/\w.])(?<!offload )(?:device|accelerator|backend|platform)"
            r"(?: (?:is|used|name|type))?['\"]?[ :=>-]{1,4}(?:device\(type=)?['\"]?cpu\b(?!:\d+ ->)"
            r"|\b(?:using|running on|training on|runs on|executing on|(?:falling|fell) back to)"
            r"(?: the)?(?: device)?\W{0,3}cpu\b(?! (?:cores?|threads?|instructions?|offload))"
            r"|\[(?:Tfrt)?CpuDevice\(|default_backend\(\)\W{1,8}cpu\b"
            r"|\[PhysicalDevice\(name='?/physical_device:CPU:0'?, device_type='?CPU'?\)\]"
            r"|torch\W{1,3}(?:version\W{1,4})?\d+\.\d[\d.]{0,8}\+cpu\b"
            r"|FP16 is not supported on CPU|\boffloaded 0/\d{1,4} layers to GPU",
            re.IGNORECASE,
        ),
    ),
    (
        "on-gpu",
        re.compile(
            r"\bused: True\b|\[(?:(?:Cuda|Gpu|Rocm)Device|cuda|rocm)\("
            r"|default_backend\(\)\W{1,8}(?:gpu|cuda)\b"
            r"|offloaded [1-9]\d{0,3}/\d{1,4} layers to GPU"
            r"|(?<![/\w.])(?<!initialize )(?<!Initializing )(?<! of )"
            r"(?:device|accelerator|backend|platform)"
            r"(?: (?:is|used|name|type))?"
            r"['\"]?[ :=>-]{1,4}(?:device\(type=)?['\"]?(?:cuda|gpu|mps|tpu|xpu|rocm)\b"
            r"(?!: (?:no|none|not)\b)"
            r"|\b(?:using|running on|training on)(?: the)?(?: device)?\W{0,3}"
            r"(?:cuda(?! (?:is|toolkit|version|\d))|gpu|mps|tpu)\b(?! (?:is|was) not)",
            re.IGNORECASE,
        ),
    ),
    (
        "gpu",
        re.compile(
            r"(?<!\w)(?:CUDA|GPU)s? (?:is )?available['\"]?[ ?:=>-]{1,8}(?:True|Yes|[1-9])"
            r"|\bTorch detected GPU: \S"
            r"|\binference compute\"[^\n]{0,80} library=(?:cuda|rocm|metal)\b"
            r"|is_available\(\)\W{0,8}True\b"
            r"|\bNum(?:ber of)? GPUs? Available: +[1-9]|/physical_device:GPU:\d"
            r"|^device_type: \"GPU\"$",
            re.IGNORECASE,
        ),
    ),
)
_ABOUT_DEVICES = (
    *("gpu", "cuda", "cpu", "device", "is_available", "used: true"),
    *("rocm", "mps", "tpu", "xpu", "inference compute"),
)
"""Every match contains one of these, in lower case; most lines of a log contain none."""
_SOURCE = "    "
"""The indentation of source lines in a traceback."""


_ASKED = re.compile(
    r"(?:cuda\.is_available|is_gpu_available|(?:physical|logical)_devices|cuda\.device_count)"
    r"\([^()\n]{0,60}\)\)?['\";]{0,2}$|^(?:torch\.)?cuda(?:\.is_available| available):$"
)
"""An expression of an interactive session, or of a notebook; its value follows on the next line."""
_VALUES: dict[str, DeviceWord] = {"False": "no-gpu", "[]": "no-gpu", "0": "no-gpu", "True": "gpu"}
_LAST_WORD = re.compile(r"(?:^|[\s,])(?P<value>False|\[\]|0|True)$")
"""The value may follow others, as in `2.4.1+cu121 False`."""


_OTHER_VALUE = re.compile(r"['\"]?\d{1,4}\.\d[\w.+]{0,20}['\"]?")
"""A version."""


def device_reports(lines: Sequence[Line]) -> tuple[DeviceReport, ...]:
    reports: list[DeviceReport] = []
    asked = False
    for line in lines:
        text = line.text.strip()
        value = _LAST_WORD.search(text) if asked else None
        if value is not None:
            reports.append(DeviceReport(line.number, _VALUES[value["value"]]))
        elif text:
            reports += _of_line(line)
        # Between the expression and its value may be an empty line, records of the framework, or
        # the value of another expression.
        if text and line.level == "none" and not _OTHER_VALUE.fullmatch(text):
            asked = _ASKED.search(text) is not None
    return tuple(reports)


def _of_line(line: Line) -> Iterator[DeviceReport]:
    """The first pattern that matches; the patterns with the strongest statement come first."""
    if line.text.startswith(_SOURCE) or ("offload" in line.text and "device=" in line.text):
        # Weights that are kept in main memory: offload_param=OffloadConfig(device='cpu').
        return
    folded = line.text.lower()
    if not any(word in folded for word in _ABOUT_DEVICES):
        return
    for says, pattern in _WORDS:
        if pattern.search(line.text):
            yield DeviceReport(line.number, says)
            return
