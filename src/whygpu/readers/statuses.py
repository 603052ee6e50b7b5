"""Error codes of CUDA's libraries in a log: by name, by number, or by message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from whygpu.model.log import ADVICE, Line, Status

Api = Literal["driver", "runtime", "cudnn", "cublas", "cusolver", "cufft", "nccl", "nvml"]

_PREFIXES: tuple[tuple[str, Api], ...] = (
    ("CUDA_ERROR_", "driver"),
    ("CUDNN_STATUS_", "cudnn"),
    ("CUBLAS_STATUS_", "cublas"),
    ("CUSOLVER_STATUS_", "cusolver"),
    ("CUSPARSE_STATUS_", "cusolver"),
    ("CUFFT_", "cufft"),
    ("NVML_ERROR_", "nvml"),
    ("NVML_", "nvml"),
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
    r"|NVML_ERROR_[A-Z_]{3,60}"
    r"|nccl(?:UnhandledCudaError|SystemError|InternalError|InvalidArgument|InvalidUsage|RemoteError"
    r"|InProgress|NumResults)"
    r"|cudaError(?:[A-Z][A-Za-z0-9]{2,60}))\b"
)
_NUMBERED = re.compile(
    r"UNKNOWN ERROR \((?P<unknown>-?\d{1,3})\)"
    r"|CUresult\((?P<result>-?\d{1,3})\)|Unknown CUDA error (?P<jax>\d{1,3})\b"
    r"|\[(?P<numba>\d{1,3})\] Call to cu|cuda runtime error \((?P<thc>\d{1,3})\)"
    r"|THCudaCheck FAIL [^\n]{0,300}? error=(?P<check>\d{1,3})\b"
    r"|[Cc][Uu][Dd][Aa] error ?\((?P<paddle>\d{1,3})\)"
    r"|cudaSuccess ?\((?P<versus>\d{1,3}) ?vs\. ?0\)"
    r"|device properties, error code: (?P<grappler>\d{1,3})\b"
    r"|CUDA error (?P<ggml>\d{1,3}) at |cudaSuccess == \w{1,12} \(0 vs\. (?P<paddle_old>\d{1,3})\)"
    r"|cudaGetDeviceCount(?:\(\))? returned (?P<query>\d{1,3})\b|CUDA failure (?P<ort>\d{1,3}):"
    r"|[Cc]uda call [^\n]{0,60}failed with error code (?P<dlib>\d{1,3})\b"
    r"|CUDNN_STATUS_SUCCESS \((?P<cudnn>\d{1,2}) vs\. 0\)"
    r"|CUDA initialization failure with error: (?P<trt>\d{1,3})\b"
    r"|\bcuInit err: (?P<init>\d{1,3})\b"
    r"|(?:nvcuda|cuda driver library) init failure: (?P<go>\d{1,3})\b"
    r"|nvml(?: vram)? init failure: (?P<nvml>\d{1,3})\b"
)
_SENTENCES: tuple[tuple[str, Api, str], ...] = (
    ("no CUDA-capable device is detected", "runtime", "cudaErrorNoDevice"),
    (
        "CUDA driver version is insufficient",
        "runtime",
        "cudaErrorInsufficientDriver",
    ),
    (
        "API call is not supported in the installed CUDA driver",
        "runtime",
        "cudaErrorCallRequiresNewerDriver",
    ),
    ("no nvidia devices detected by library", "driver", "CUDA_ERROR_NO_DEVICE"),
    ("named symbol not found", "runtime", "cudaErrorSymbolNotFound"),
    ("invalid device ordinal", "runtime", "cudaErrorInvalidDevice"),
    (
        "no kernel image is available",
        "runtime",
        "cudaErrorNoKernelImageForDevice",
    ),
    (
        "the provided PTX was compiled with an unsupported toolchain",
        "runtime",
        "cudaErrorUnsupportedPtxVersion",
    ),
    ("invalid device function", "runtime", "cudaErrorInvalidDeviceFunction"),
    ("device-side assert triggered", "runtime", "cudaErrorAssert"),
    ("an illegal memory access was encountered", "runtime", "cudaErrorIllegalAddress"),
    ("an illegal instruction was encountered", "runtime", "cudaErrorIllegalInstruction"),
    ("misaligned address", "runtime", "cudaErrorMisalignedAddress"),
    ("unspecified launch failure", "runtime", "cudaErrorLaunchFailure"),
    ("uncorrectable ECC error encountered", "runtime", "cudaErrorECCUncorrectable"),
    ("busy or unavailable", "runtime", "cudaErrorDevicesUnavailable"),
    (
        "system has unsupported display driver / cuda driver combination",
        "runtime",
        "cudaErrorSystemDriverMismatch",
    ),
    ("system not yet initialized", "runtime", "cudaErrorSystemNotReady"),
    (
        "forward compatibility was attempted on non supported HW",
        "runtime",
        "cudaErrorCompatNotSupportedOnDevice",
    ),
    ("CUDA driver is a stub library", "runtime", "cudaErrorStubLibrary"),
    ("CUDA error: out of memory", "runtime", "cudaErrorMemoryAllocation"),
    ("CUDA error: unknown error", "runtime", "cudaErrorUnknown"),
    ("CUDA unknown error", "runtime", "cudaErrorUnknown"),
    ("CUDA: unknown error", "runtime", "cudaErrorUnknown"),
    ("CUDA failed with error unknown error", "runtime", "cudaErrorUnknown"),
    ("Cuda failure: unknown error", "runtime", "cudaErrorUnknown"),
    ("initialize CUDA: unknown error", "runtime", "cudaErrorUnknown"),
    ("initialize CUDA: initialization error", "runtime", "cudaErrorInitializationError"),
    ("CUDA error: initialization error", "runtime", "cudaErrorInitializationError"),
    ("failed. Status: initialization error", "runtime", "cudaErrorInitializationError"),
    ("failed. Status: unknown error", "runtime", "cudaErrorUnknown"),
    ("the launch timed out and was terminated", "runtime", "cudaErrorLaunchTimeout"),
    ("too many resources requested for launch", "runtime", "cudaErrorLaunchOutOfResources"),
    ("peer access is not supported", "runtime", "cudaErrorPeerAccessUnsupported"),
    ("Driver/library version mismatch", "nvml", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
    ("NVML/RM version mismatch", "nvml", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
    ("Failed to initialize NVML: Unknown Error", "nvml", "NVML_ERROR_UNKNOWN"),
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
_FOLDED_SENTENCES = tuple((sentence.lower(), api, name) for sentence, api, name in _SENTENCES)
"""Banners of containers write them with a capital."""
_DRIVER_NUMBERS = {
    # What the toolkit's stub returned before it had its own code.
    -1: "CUDA_ERROR_STUB_LIBRARY",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY",
    35: "CUDA_ERROR_INSUFFICIENT_DRIVER",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    214: "CUDA_ERROR_ECC_UNCORRECTABLE",
    200: "CUDA_ERROR_INVALID_IMAGE",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    303: "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED",
    304: "CUDA_ERROR_OPERATING_SYSTEM",
    500: "CUDA_ERROR_NOT_FOUND",
    802: "CUDA_ERROR_SYSTEM_NOT_READY",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    999: "CUDA_ERROR_UNKNOWN",
}
_RUNTIME_NUMBERS = {
    2: "cudaErrorMemoryAllocation",
    3: "cudaErrorInitializationError",
    4: "cudaErrorLaunchFailure",
    6: "cudaErrorLaunchTimeout",
    7: "cudaErrorLaunchOutOfResources",
    8: "cudaErrorInvalidDeviceFunction",
    10: "cudaErrorInvalidDevice",
    30: "cudaErrorUnknown",
    35: "cudaErrorInsufficientDriver",
    38: "cudaErrorNoDevice",
    39: "cudaErrorECCUncorrectable",
    46: "cudaErrorDevicesUnavailable",
    48: "cudaErrorNoKernelImageForDevice",
    59: "cudaErrorAssert",
    73: "cudaErrorIllegalInstruction",
    74: "cudaErrorMisalignedAddress",
    77: "cudaErrorIllegalAddress",
    98: "cudaErrorInvalidDeviceFunction",
    100: "cudaErrorNoDevice",
    101: "cudaErrorInvalidDevice",
    209: "cudaErrorNoKernelImageForDevice",
    214: "cudaErrorECCUncorrectable",
    222: "cudaErrorUnsupportedPtxVersion",
    700: "cudaErrorIllegalAddress",
    701: "cudaErrorLaunchOutOfResources",
    702: "cudaErrorLaunchTimeout",
    710: "cudaErrorAssert",
    715: "cudaErrorIllegalInstruction",
    716: "cudaErrorMisalignedAddress",
    719: "cudaErrorLaunchFailure",
    802: "cudaErrorSystemNotReady",
    803: "cudaErrorSystemDriverMismatch",
    804: "cudaErrorCompatNotSupportedOnDevice",
    999: "cudaErrorUnknown",
}
_CUDNN_NUMBERS = {
    1: "CUDNN_STATUS_NOT_INITIALIZED",
    2: "CUDNN_STATUS_ALLOC_FAILED",
    3: "CUDNN_STATUS_BAD_PARAM",
    4: "CUDNN_STATUS_INTERNAL_ERROR",
    6: "CUDNN_STATUS_ARCH_MISMATCH",
    7: "CUDNN_STATUS_MAPPING_ERROR",
    8: "CUDNN_STATUS_EXECUTION_FAILED",
}
_NVML_NUMBERS = {
    4: "NVML_ERROR_NO_PERMISSION",
    9: "NVML_ERROR_DRIVER_NOT_LOADED",
    12: "NVML_ERROR_LIBRARY_NOT_FOUND",
    15: "NVML_ERROR_GPU_IS_LOST",
    18: "NVML_ERROR_LIB_RM_VERSION_MISMATCH",
    999: "NVML_ERROR_UNKNOWN",
}
_CALL = re.compile(
    r"\b(?!cudaError|cudaSuccess)(?P<call>(?:cu|cuda|cudnn|cublas|nccl|nvml)[A-Z]\w{2,60})\b"
    r"(?=\(|:| results in| failed| err:|,)"
    r"|[Ff]ailed call to (?P<failed>\w{3,60})|Call to (?P<to>\w{3,60}) results"
)


def statuses(lines: Sequence[Line]) -> tuple[Status, ...]:
    return tuple(status for line in lines for status in _of_line(line))


def _of_line(line: Line) -> Iterator[Status]:
    text = line.text
    if ADVICE.search(text):
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
            if numbered[1][-1].isdigit():
                nameless.append(status)
                continue
            found.add(numbered[1])
            yield status
    if found:
        return
    folded = text.lower()
    for sentence, sentence_api, name in _FOLDED_SENTENCES:
        if sentence in folded:
            yield Status(line.number, sentence_api, name, called)
            return
    # A number that is in no table says less than the words next to it.
    yield from nameless


def _by_number(match: re.Match[str]) -> tuple[Api, str] | None:
    group = match.lastgroup
    assert group is not None
    number = int(match[group])
    if group == "cudnn":
        name = _CUDNN_NUMBERS.get(number)
        return ("cudnn", name) if name else None
    if group == "nvml":
        return "nvml", _NVML_NUMBERS.get(number, f"NVML_ERROR_{number}")
    if group in ("unknown", "result", "jax", "numba", "init", "go"):
        return "driver", _DRIVER_NUMBERS.get(number, f"CUDA_ERROR_{number}")
    return "runtime", _RUNTIME_NUMBERS.get(number, f"cudaError{number}")
