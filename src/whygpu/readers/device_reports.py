"""What a program reports about its devices: no GPU, a GPU, the CPU."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.model.log import LOGS_OF_TENSORFLOW, DeviceReport, DeviceWord, Line, Shown
from whygpu.readers.words_in import words_in

_NO = r"(?:False\b|No\b|None\b|0\b|\[\])"
_GAP = r"['\"]?[ ?:=>-]{1,8}"
_GIVES = (
    rf"(?:{_GAP}|['\"`]? (?:only |always |just )?"
    r"(?:is|gives?|returns?|prints?|shows?|outputs?) (?:an |me )?)"
)
"""After an expression, as a program or a person writes its value."""
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
            rf"|(?<!\w)(?:num(?:ber)?|#|count)(?:[ _]of)?[ _](?:\w{{1,12}}[ _]){{0,2}}GPUs?"
            rf"(?:[ _]\w{{1,12}}){{0,2}}{_GAP}0\b|(?<!\w)n_gpus?{_GAP}0\b"
            r"|\b0 (?:physical|logical|available|visible) GPUs?\b|\b0 GPUs\b"
            r"|\b[Ff]ound 0 (?:CUDA|GPU)|\bCUDA (?:is |was )?(?:not available|unavailable)\b"
            r"|\b[Nn]o (?:(?:CUDA |NVIDIA |compatible |usable )?GPUs?(?:/TPU)?|accelerator) "
            r"(?:(?:is|are|was|were) )?(?:found|detected|available|discovered)"
            r"|\b(?:CUDA|GPU) (?:is |was )?not (?:available|found|detected|enabled)\b"
            r"|\bdid not (?:find|detect|see) (?:a|any) GPUs?\b"
            r"|\b[Pp]lease install GPU version of T(?:F|ensor[Ff]low)\b"
            r"|^device_type: \"CPU\"$|\binference compute\"[^\n]{0,40} library=cpu\b"
            r"|\bGPU will not be used\b|Device mapping: no known devices"
            r"|\bThere are non-GPU devices in\b|Strategy with devices \('[^'\n]{0,80}CPU:0',\)",
            re.IGNORECASE,
        ),
    ),
    (
        "on-cpu",
        re.compile(
            r"(?<![/\w.])(?<!offload )(?:device|accelerator|backend|platform)"
            r"(?: (?:is|used|name|type))?['\"]?[ :=>-]{1,4}(?:device\(type=)?['\"]?cpu\b(?!:\d+ ->)"
            r"|\b(?:using|running on|training on|runs on|executing on|(?:falling|fell) back to"
            r"|switch(?:ing|ed) to)"
            r"(?: the)?(?: device)?\W{0,3}cpu\b(?! (?:cores?|threads?|instructions?|offload))"
            rf"|\[(?:Tfrt)?CpuDevice\(|devices\(\){_GIVES}(?:only )?(?:Tfrt)?CPU(?:Device)?\b"
            r"|default_backend\(\)\W{1,8}cpu\b"
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
            # An option of a command (--device cuda) is a wish.
            r"|(?<![/\w.-])(?<!initialize )(?<!Initializing )(?<! of )"
            r"(?:device|accelerator|backend|platform)"
            r"(?: (?:is|used|name|type))?"
            r"['\"]?[ :=>-]{1,4}(?:device\(type=)?['\"]?(?:cuda|gpu|mps|tpu|xpu|rocm)\b"
            r"(?!: (?:no|none|not)\b)"
            r"|\b(?:using|running on|training on)(?: the)?(?: device)?\W{0,3}"
            r"(?:cuda(?! (?:is|toolkit|version|\d))|gpu|mps|tpu)\b"
            r"(?! (?:is|was) not| (?:warning|error|problem|issue|fails?|crash)\w{0,3}\b)",
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
    *("gpu", "cuda", "cpu", "device", "is_available", "used: true", "accelerator"),
    *("rocm", "mps", "tpu", "xpu", "inference compute"),
)
"""Every match contains one of these, in lower case; most lines of a log contain none."""
_GOOD_NEWS: tuple[DeviceWord, ...] = ("on-gpu", "gpu")
_DENIED = re.compile(
    r"(?:\b(?:not|never|cannot|unable|without|if|when|whether|how|why|should|instead|want|trying|fail\w*"
    r"|can i)|n['’]t|doesnt|isnt|cant)\b[^,;:.\n]{0,60}\Z",
    re.IGNORECASE,
)
"""Before the words, in the same part of the sentence: "not using GPU" and "how do I know if it is
using the GPU" report none."""
_SOURCE = "    "
"""The indentation of source lines in a traceback."""


_PARAGRAPH = 300
_MANY_SENTENCES = 2
"""Ends of sentences with another sentence behind them."""
_OF_A_PERSON = re.compile(
    r"(?<![\w.])(?:I|we|We|my|My|our|can|could|should|would|may|might|seems?|other|some|many|most|any"
    r"|every|supports?|than|if|when)(?![\w.])"
)
"""Words of a sentence that supposes something, or speaks of devices in general: "other frameworks
using the GPU". A program that says what it works on has none of them."""
_VALUE_GIVEN = re.compile(r"[(:=\[]")
"""An expression and its value are a fact in prose, too."""
_SENTENCE_END = re.compile(r"[a-z)`][.?!] {1,2}[A-Z]")


_OF_TENSORFLOW = re.compile(r"Could not find cuda drivers on your machine")


def device_reports(
    lines: Sequence[Line], shown: Sequence[Shown], framework: str
) -> tuple[DeviceReport, ...]:
    """What programs say, in the order of the log, with the values of expressions.

    Programs of other frameworks import TensorFlow for TensorBoard: that it misses libcudart says
    nothing of them.
    """
    values = {value.line: _of_value(value) for value in shown if _of_value(value) is not None}
    reports: list[DeviceReport] = []
    about_devices = words_in(lines, _ABOUT_DEVICES)
    for line in lines:
        says = values.get(line.number)
        if says is not None:
            reports.append(DeviceReport(line.number, says))
        elif line.text.strip() and (
            framework in (*LOGS_OF_TENSORFLOW, "") or not _OF_TENSORFLOW.search(line.text)
        ):
            reports += _of_line(line, about_devices)
    return tuple(reports)


_GPU_DEVICE = re.compile(r"(?:Cuda|Gpu|Rocm)Device|\b(?:gpu|cuda|rocm)\b", re.IGNORECASE)
_CPU_DEVICE = re.compile(r"CpuDevice|\bcpu\b", re.IGNORECASE)


def _of_value(shown: Shown) -> DeviceWord | None:
    """What the value of an expression says; None if it says nothing about the devices in use."""
    if shown.of == "other-gpu-there":
        return "gpu" if shown.value == "True" else None
    if shown.of == "gpu-there":
        return "gpu" if shown.value == "True" else "no-gpu"
    if shown.of == "gpu-count":
        return "no-gpu" if shown.value == "0" else "gpu"
    if shown.of == "gpu-list":
        return "no-gpu" if shown.value == "[]" else "gpu"
    if shown.of in ("devices", "jax-backend"):
        if _GPU_DEVICE.search(shown.value):
            return "on-gpu"
        return "on-cpu" if _CPU_DEVICE.search(shown.value) else None
    return None


def _is_paragraph(text: str) -> bool:
    """Several sentences, as in an article, which speaks of devices in general. What a person says
    of his own is found by other means (`tables/topics.py`)."""
    return len(text) >= _PARAGRAPH and len(_SENTENCE_END.findall(text)) >= _MANY_SENTENCES


def _given_value(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next((match for match in pattern.finditer(text) if _VALUE_GIVEN.search(match[0])), None)


def _without_question(text: str) -> str:
    """A question says nothing, but the sentences before it may."""
    text = text.rstrip()
    if not text.endswith("?"):
        return text
    return text[: max(text.rfind(end) for end in (". ", "! ", "? ")) + 1]


def _is_doubtful(line: Line, found: re.Match[str], text: str) -> bool:
    """Whether a sentence denies the words, or is a person's, who may be wrong."""
    before = text[: found.start()]
    if _DENIED.search(before):
        return True
    written = line.level == "none" and not line.source
    return written and not _VALUE_GIVEN.search(found[0]) and bool(_OF_A_PERSON.search(before))


def _of_line(line: Line, about_devices: Sequence[str]) -> Iterator[DeviceReport]:
    """The first pattern that matches; the patterns with the strongest statement come first."""
    if line.text.startswith(_SOURCE) or ("offload" in line.text and "device=" in line.text):
        # Weights that are kept in main memory: offload_param=OffloadConfig(device='cpu').
        return
    text = _without_question(line.text) if line.level == "none" else line.text
    folded = text.lower()
    if not any(word in folded for word in about_devices):
        return
    prose = line.level == "none" and _is_paragraph(text)
    for says, pattern in _WORDS:
        found = _given_value(pattern, text) if prose else pattern.search(text)
        if found is None or (says in _GOOD_NEWS and _is_doubtful(line, found, text)):
            continue
        yield DeviceReport(line.number, says)
        return
