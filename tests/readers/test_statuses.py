"""Error codes in logs: one name for the many ways in which a library's error is written."""

from __future__ import annotations

from tests.cases import each
from whygpu.readers.log import read_text


@each(
    ("line", "name"),
    [
        ("failed call to cuInit: CUDA_ERROR_NO_DEVICE", "CUDA_ERROR_NO_DEVICE"),
        ("failed call to cuInit: UNKNOWN ERROR (303)", "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"),
        ("[803] Call to cuInit results in UNKNOWN_CUDA_ERROR", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        ("Check failed: error == cudaSuccess (38 vs. 0)  no CUDA-capable", "cudaErrorNoDevice"),
        ("Check failed: cudaSuccess == cudaStat (0 vs. 35) Cuda", "cudaErrorInsufficientDriver"),
        ("cuda runtime error (10) : invalid device ordinal at m.cpp:88", "cudaErrorInvalidDevice"),
        ("THCudaCheck FAIL file=x.cpp line=74 error=35 : CUDA", "cudaErrorInsufficientDriver"),
        ("CUDA failure 100: no CUDA-capable device is detected ; GPU=0", "cudaErrorNoDevice"),
        ("OSError: (External) CUDA error(35), CUDA driver", "cudaErrorInsufficientDriver"),
        ("CUDA error 35 at ggml-cuda.cu:493: CUDA driver", "cudaErrorInsufficientDriver"),
        ("cudaGetDeviceCount returned 30", "cudaErrorUnknown"),
        ("Error 802: system not yet initialized", "cudaErrorSystemNotReady"),
        ("[[ System has unsupported display driver / cuda driver combination (error 803) ]]",
         "cudaErrorSystemDriverMismatch"),
        ("Failed to initialize NVML: Unknown Error", "NVML_ERROR_UNKNOWN"),
        ("error==cudaSuccess(8 vs.0) invalid device function", "cudaErrorInvalidDeviceFunction"),
        ("Check failed: error == cudaSuccess (7 vs. 0) too many resources requested for launch",
         "cudaErrorLaunchOutOfResources"),
        ("cuda runtime error (123) : misaligned address", "cudaErrorMisalignedAddress"),
        ("cuda runtime error (123) : something else", "cudaError123"),
        ("CUDA error: no kernel image is available", "cudaErrorNoKernelImageForDevice"),
        ("Status: CUDA-capable device(s) is/are busy or unavailable",
         "cudaErrorDevicesUnavailable"),
        ("nvml error: driver/library version mismatch", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
        # Programs that no table knows.
        ("engine: CUDA error: invalid resource handle", "cudaErrorInvalidResourceHandle"),
        ("engine: CUDA failed with error out of memory", "cudaErrorMemoryAllocation"),
        ("Error Code 1: Cuda Runtime (invalid argument)", "cudaErrorInvalidValue"),
        ("CUDA error: operation not permitted when stream is capturing",
         "cudaErrorStreamCaptureUnsupported"),
        ("ERROR: CUDA error: invalid device context (code 201, ERROR_INVALID_CONTEXT)",
         "CUDA_ERROR_INVALID_CONTEXT"),
        ("cuMemcpyHtoD_v2(dst, src, n) failed with error 400", "CUDA_ERROR_INVALID_HANDLE"),
        ("cuda driver library failed to get device context 999", "CUDA_ERROR_UNKNOWN"),
        ("CUDA error: the requested functionality is not supported",
         "CUBLAS_STATUS_NOT_SUPPORTED"),
        ("cuBLAS error 13 at ggml-cuda.cu:77", "CUBLAS_STATUS_EXECUTION_FAILED"),
        ("NVRTC_ERROR_COMPILATION (6)", "NVRTC_ERROR_COMPILATION"),
        ("nvmlInit_v2 failed: 18", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
    ],
)  # fmt: skip
def test_one_name_for_all_ways_of_writing(line: str, name: str) -> None:
    assert [status.name for status in read_text(line).statuses] == [name]


def test_what_a_check_allows_did_not_happen() -> None:
    line = "Check failed: e == cudaSuccess || e == cudaErrorCudartUnloading: CUDA: unknown error"
    (status,) = read_text(line).statuses
    assert (status.name, status.call) == ("cudaErrorUnknown", "")


@each(
    "line",
    [
        "/usr/local/cuda/bin/nvcc failed with exit status 1",
        "CUDA server answered with status 500",
        "compiled with cuda: tests: invalid argument --fast",
        "tar: data: file not found",
        "mount: operation not permitted",
        "process for cuda ended with code 137",
    ],
)
def test_numbers_and_messages_of_other_programs_are_no_statuses(line: str) -> None:
    assert not read_text(line).statuses


def test_a_line_of_source_that_compares_is_no_status() -> None:
    assert not read_text("    if status == cudaErrorNoDevice:").statuses


@each(
    ("line", "call"),
    [
        ("operation cuInit(0) failed: CUDA_ERROR_NO_DEVICE", "cuInit"),
        ("Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "cuLinkAddData"),
        ("cudaGetDevice() failed. Status: initialization error", "cudaGetDevice"),
        ("CUDARuntimeError: cudaErrorNoDevice: no CUDA-capable device is detected", ""),
    ],
)
def test_who_was_called(line: str, call: str) -> None:
    assert read_text(line).statuses[0].call == call
