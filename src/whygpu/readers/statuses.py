"""Error codes of CUDA's libraries in a log: by name, by number, or by message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from whygpu.model.log import NO_FAILURE_AFTER, Line, Status
from whygpu.tables.cuda_statuses import (
    CUBLAS_MESSAGES,
    CUBLAS_NUMBERS,
    CUDNN_NUMBERS,
    NUMBERS_BEFORE_10_1,
    NVML_NUMBERS,
    STATUSES,
)

Api = Literal[
    "driver", "runtime", "cudnn", "cublas", "cusolver", "cufft", "curand", "nccl", "nvml", "nvrtc"
]

_PREFIXES: tuple[tuple[str, Api], ...] = (
    ("CUDA_ERROR_", "driver"),
    ("CUDNN_STATUS_", "cudnn"),
    ("CUBLAS_STATUS_", "cublas"),
    ("CUSOLVER_STATUS_", "cusolver"),
    ("CUSPARSE_STATUS_", "cusolver"),
    ("CUFFT_", "cufft"),
    ("CURAND_STATUS_", "curand"),
    ("NVML_ERROR_", "nvml"),
    ("NVML_", "nvml"),
    ("NVRTC_ERROR_", "nvrtc"),
    ("nccl", "nccl"),
    ("cudaError", "runtime"),
)
_NOT_STATUSES = ("cudaErrorCudartUnloading",)
"""The process is ending. Checks name this code next to the actual error."""
_NAME = re.compile(
    # "e == cudaErrorCudartUnloading" is what a check allows, not what happened.
    r"(?<![=!]= )\b(?:CUDA_ERROR_[A-Z][A-Z_0-9]{2,60}|CUDNN_STATUS_[A-Z][A-Z_0-9]{2,60}"
    r"|CUBLAS_STATUS_[A-Z_]{3,60}"
    r"|CUSOLVER_STATUS_[A-Z_]{3,60}|CUSPARSE_STATUS_[A-Z_]{3,60}|CUFFT_[A-Z_]{3,40}"
    r"|CURAND_STATUS_[A-Z_]{3,60}"
    r"|NVML_ERROR_[A-Z_]{3,60}|NVRTC_ERROR_[A-Z_]{3,60}"
    r"|nccl(?:UnhandledCudaError|SystemError|InternalError|InvalidArgument|InvalidUsage|RemoteError"
    r"|InProgress|NumResults)"
    r"|cudaError(?:[A-Z][A-Za-z0-9]{2,60}))\b"
)
_NUMBERED = re.compile(
    r"UNKNOWN ERROR \((?P<unknown>-?\d{1,3})\)"
    r"|CUresult\((?P<result>-?\d{1,3})\)|Unknown CUDA error (?P<jax>\d{1,3})\b"
    r"|\[(?P<numba>\d{1,3})\] Call to cu|cuda runtime error \((?P<thc>\d{1,3})\)"
    r"|THCudaCheck FAIL [^\n]{0,300}? error=(?P<check>\d{1,3})\b"
    r"|[Cc][Uu][Dd][Aa] [Ee]rror[:= ]{0,2} ?\(?(?P<cuda>\d{1,3})\b(?![.\d]|\s\w{1,12} (?:of|in) )"
    r"|cudaSuccess ?\((?P<versus>\d{1,3}) ?vs\. ?0\)"
    r"|device properties, error code: (?P<grappler>\d{1,3})\b"
    r"|cudaSuccess == \w{1,12} \(0 vs\. (?P<paddle_old>\d{1,3})\)"
    r"|cudaGetDeviceCount(?:\(\))? returned (?P<query>\d{1,3})\b|CUDA failure (?P<ort>\d{1,3}):"
    r"|[Cc]uda call [^\n]{0,60}failed with error code (?P<dlib>\d{1,3})\b"
    r"|CUDNN_STATUS_SUCCESS \((?P<cudnn>\d{1,2}) vs\. 0\)|cuDNN [Ee]rror ?\((?P<cudnn2>\d{1,2})\)"
    r"|cu(?:blas|BLAS) [Ee]rror[:= (]{1,3}(?P<cublas>\d{1,2})\b"
    r"|CUBLAS_STATUS_SUCCESS \((?P<cublas2>\d{1,2}) vs\. 0\)"
    r"|CUDA initialization failure with error: (?P<trt>\d{1,3})\b"
    r"|\bcuInit err: (?P<init>\d{1,3})\b|\(code (?P<julia>\d{1,3}), ERROR_[A-Z]"
    r"|(?:nvcuda|cuda driver library) init failure: (?P<go>\d{1,3})\b"
    r"|nvml(?: vram)? init failure: (?P<nvml>\d{1,3})\b"
    r"|\bnvml[A-Z]\w{2,40}[^\n\d]{0,40}(?:failed|returned|error)\W{1,3}(?P<nvml2>\d{1,3})\b"
)
_ANY_NUMBER = re.compile(
    # A program's own sentence about CUDA that ends in a number.
    r"(?:\bcuda\b|\bcud?a?[A-Z]\w{2,40})[^\n]{0,80}?"
    r"\b(?:error|failure|code|status|returned|result|context|with)\b\W{1,3}(?P<number>\d{1,3})"
    r"(?=$|[\s,;:)\]\"'])(?! \w)",
    re.IGNORECASE,
)
_SMALLEST_OF_CUDA_ALONE = 100
_ALSO_HTTP = frozenset((200, 201, 202, 205, 206, 226, 300, 301, 302, 304, 400, 401, 402, 500))
"""Without the name of a call next to them, these numbers may be those of a web server, and smaller
ones may be anything."""
_NOT_TOLD_APART = frozenset((1, 2, 3, 4, 9, 103, 201, 202, 205, 206, 301, 400, 401, 402, 500, 600))
_NOT_TOLD_APART |= frozenset((709, 800, 801, 909, 999))
"""Other programs have the same messages ("invalid argument", "out of memory"). They count if the
sentence speaks of CUDA."""
_NO_FAILURES = frozenset((4, 301, 600))
"""The end of a process, a file, and a kernel that still runs."""
_FOLDED_MESSAGES = tuple(
    (row.message.lower(), f"cudaError{row.runtime}")
    for row in STATUSES
    if row.runtime and row.number not in _NOT_TOLD_APART
)
_FOLDED_VAGUE_MESSAGES = tuple(
    (row.message.lower(), f"cudaError{row.runtime}")
    for row in STATUSES
    if row.runtime and row.number in _NOT_TOLD_APART - _NO_FAILURES
)
_LEADS_TO_A_MESSAGE = re.compile(
    # CUDA: out of memory; CUDA error out of memory; cudaFoo() failed. Status: out of memory
    r"^\W{1,4}$|(?:error|fail|status|exception|runtime|code)[^\n]{0,120}?(?:[:(=,)\]-]|error|\d)\s{0,3}$"
)
_SENTENCES: tuple[tuple[str, Api, str], ...] = (
    ("no nvidia devices detected by library", "driver", "CUDA_ERROR_NO_DEVICE"),
    ("named symbol not found", "runtime", "cudaErrorSymbolNotFound"),
    ("no kernel image is available", "runtime", "cudaErrorNoKernelImageForDevice"),
    ("CUDA driver version is insufficient", "runtime", "cudaErrorInsufficientDriver"),
    ("busy or unavailable", "runtime", "cudaErrorDevicesUnavailable"),
    ("peer access is not supported", "runtime", "cudaErrorPeerAccessUnsupported"),
    ("CUDA unknown error", "runtime", "cudaErrorUnknown"),
    ("Driver/library version mismatch", "nvml", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
    ("NVML/RM version mismatch", "nvml", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
    ("Failed to initialize NVML: Unknown Error", "nvml", "NVML_ERROR_UNKNOWN"),
    ("Failed to initialize NVML Unknown Error", "nvml", "NVML_ERROR_UNKNOWN"),
    ("Failed to initialize NVML: ERROR_UNKNOWN", "nvml", "NVML_ERROR_UNKNOWN"),
    ("NVMLError_Unknown", "nvml", "NVML_ERROR_UNKNOWN"),
    ("nvml error: unknown error", "nvml", "NVML_ERROR_UNKNOWN"),
    ("Failed to initialize NVML: Insufficient Permissions", "nvml", "NVML_ERROR_NO_PERMISSION"),
    ("NVMLError_NoPermission", "nvml", "NVML_ERROR_NO_PERMISSION"),
    ("Failed to initialize NVML: Driver Not Loaded", "nvml", "NVML_ERROR_DRIVER_NOT_LOADED"),
    ("NVMLError_DriverNotLoaded", "nvml", "NVML_ERROR_DRIVER_NOT_LOADED"),
    ("nvml error: driver not loaded", "nvml", "NVML_ERROR_DRIVER_NOT_LOADED"),
    ("NVML Shared Library Not Found", "nvml", "NVML_ERROR_LIBRARY_NOT_FOUND"),
    ("NVMLError_LibraryNotFound", "nvml", "NVML_ERROR_LIBRARY_NOT_FOUND"),
    ("could not load NVML library", "nvml", "NVML_ERROR_LIBRARY_NOT_FOUND"),
    ("GPU is lost", "nvml", "NVML_ERROR_GPU_IS_LOST"),
    ("NVMLError_GpuIsLost", "nvml", "NVML_ERROR_GPU_IS_LOST"),
)
_FOLDED_SENTENCES = (
    *((sentence.lower(), api, name) for sentence, api, name in _SENTENCES),
    *((message, "runtime", name) for message, name in _FOLDED_MESSAGES),
)
"""Banners of containers write them with a capital."""
_DRIVER_NUMBERS = {
    row.number: f"CUDA_ERROR_{row.driver}" if row.driver else f"cudaError{row.runtime}"
    for row in STATUSES
} | {
    # What the toolkit's stub returned before it had its own code.
    -1: "CUDA_ERROR_STUB_LIBRARY",
    35: "CUDA_ERROR_INSUFFICIENT_DRIVER",
}
_RUNTIME_NUMBERS = {row.number: f"cudaError{row.runtime}" for row in STATUSES if row.runtime} | {
    number: f"cudaError{name}" for number, name in NUMBERS_BEFORE_10_1.items()
}
_CALL = re.compile(
    r"\b(?!cudaError|cudaSuccess)(?P<call>(?:cu|cuda|cudnn|cublas|nccl|nvml)[A-Z]\w{2,60})\b"
    r"(?=\(|:| results in| failed| err:|,)"
    r"|[Ff]ailed call to (?P<failed>\w{3,60})|Call to (?P<to>\w{3,60}) results"
)


_Sentences = Sequence[tuple[str, Api, str]]
ABOUT_STATUSES = ("cu", "nvml", "nvrtc", "nccl", "unknown error (", "error code: ", "(code ")
"""In lower case. A line without any of them, and without a sentence, has no code of CUDA."""


def statuses(lines: Sequence[Line]) -> tuple[Status, ...]:
    # Most logs have none of a hundred sentences: which ones is asked once, not for every line.
    folded = "\n".join(line.text for line in lines).lower()
    sentences = [row for row in _FOLDED_SENTENCES if row[0] in folded]
    words = [word for word in (*ABOUT_STATUSES, *(row[0] for row in sentences)) if word in folded]
    if not words:
        return ()
    return tuple(
        status
        for line in lines
        if _holds(line.text.lower(), words)
        for status in _of_line(line, sentences)
    )


def _holds(text: str, words: Sequence[str]) -> bool:
    return any(word in text for word in words)


def _of_line(line: Line, sentences: _Sentences) -> Iterator[Status]:
    text = line.text
    if NO_FAILURE_AFTER.search(text):
        return
    call = _CALL.search(text)
    called = next((name for name in call.groups() if name), "") if call else ""
    found: set[str] = set()
    nameless: list[Status] = []
    for match in _NAME.finditer(text):
        name = match.group()
        if name not in found and not name.endswith("_SUCCESS") and name not in _NOT_STATUSES:
            found.add(name)
            api = next(api for prefix, api in _PREFIXES if name.startswith(prefix))
            yield Status(line.number, api, name, called)
    for match in _NUMBERED.finditer(text):
        numbered = _by_number(match)
        if numbered and numbered[1] not in found and not (found and match["numba"]):
            status = Status(line.number, numbered[0], numbered[1], called)
            if numbered[1][-1].isdecimal():
                nameless.append(status)
                continue
            found.add(numbered[1])
            yield status
    if found:
        return
    otherwise = _by_words(line.number, text, called, sentences) or _by_any_number(
        line.number, text, called
    )
    if otherwise is not None:
        yield otherwise
        return
    # A number that is in no table says less than the words next to it.
    yield from nameless


def _by_words(line: int, text: str, called: str, sentences: _Sentences) -> Status | None:
    """The status whose message is in the text. `sentences` are those that the log contains."""
    folded = text.lower()
    for sentence, api, name in sentences:
        if sentence in folded:
            return Status(line, api, name, called)
    if "cuda" in folded:
        for message, name in _FOLDED_VAGUE_MESSAGES:
            at = folded.find(message)
            _, cuda, between = folded[max(0, at - _NEAR) : max(0, at)].rpartition("cuda")
            if cuda and _LEADS_TO_A_MESSAGE.search(between):
                return Status(line, "runtime", name, called)
    if "cublas" in folded or "cuda" in folded:
        for message, name in CUBLAS_MESSAGES.items():
            if message in folded:
                return Status(line, "cublas", f"CUBLAS_STATUS_{name}", called)
    return None


_NEAR = 200


def _by_any_number(line: int, text: str, called: str) -> Status | None:
    match = _ANY_NUMBER.search(text)
    number = int(match["number"]) if match else 0
    if not called and (number < _SMALLEST_OF_CUDA_ALONE or number in _ALSO_HTTP):
        return None
    name = _DRIVER_NUMBERS.get(number)
    return Status(line, "driver", name, called) if name else None


_BY_THE_DRIVER = ("unknown", "result", "jax", "numba", "init", "go", "julia")


def _by_number(match: re.Match[str]) -> tuple[Api, str] | None:
    group = match.lastgroup
    assert group is not None
    number = int(match[group])
    if group in ("cudnn", "cudnn2"):
        name = CUDNN_NUMBERS.get(number)
        return ("cudnn", f"CUDNN_STATUS_{name}") if name else None
    if group in ("cublas", "cublas2"):
        name = CUBLAS_NUMBERS.get(number)
        return ("cublas", f"CUBLAS_STATUS_{name}") if name else None
    if group in ("nvml", "nvml2"):
        return "nvml", f"NVML_ERROR_{NVML_NUMBERS.get(number, number)}"
    if group in _BY_THE_DRIVER:
        return "driver", _DRIVER_NUMBERS.get(number, f"CUDA_ERROR_{number}")
    return "runtime", _RUNTIME_NUMBERS.get(number, f"cudaError{number}")
