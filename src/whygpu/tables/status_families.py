"""What an error code means on its own, whichever program printed it.

Most codes have several reasons, and the detectors of causes weigh them by the rest of the log. The
codes here have one kind of reason. They decide if nothing else in the log does.
"""

from __future__ import annotations

from whygpu.tables.cuda_statuses import STATUSES

MPS_CODES = range(805, 811)
"""What CUDA returns if NVIDIA's server MPS does not serve the program."""

_BY_NUMBER = {
    # Arguments, handles and states that a program may not use, and launches that a GPU refuses.
    "kernel-bug-illegal-access": (
        *(1, 9, 12, 13, 16, 17, 21, 52, 53, 201, 205, 206, 400, 401, 703, 709, 712, 713, 720, 721),
        *(800, 801, *range(900, 909), 910, 912, 913, 914, 915),
    ),
    # Licences of virtual GPUs.
    "nvidia-kernel-module-state": (102, 103, 127),
    "mps-server-refuses": tuple(MPS_CODES),
    "ecc-xid-hardware-error": (214, 220, 226),
}
_BY_NAME = {
    "kernel-bug-illegal-access": (
        "CUBLAS_STATUS_MAPPING_ERROR",
        "CUDNN_STATUS_INVALID_VALUE",
        "CUSOLVER_STATUS_INVALID_VALUE",
        "CUSPARSE_STATUS_INVALID_VALUE",
        "CUSPARSE_STATUS_NOT_SUPPORTED",
        "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES",
        "CUFFT_INVALID_PLAN",
        "CUFFT_INVALID_VALUE",
        "CUFFT_INVALID_SIZE",
        "CUFFT_SETUP_FAILED",
        "NVRTC_ERROR_INTERNAL_ERROR",
        "CURAND_STATUS_LAUNCH_FAILURE",
        "CURAND_STATUS_PREEXISTING_FAILURE",
        "CURAND_STATUS_INTERNAL_ERROR",
    ),
    "nvidia-kernel-module-state": ("NVML_ERROR_IRQ_ISSUE", "NVML_ERROR_OPERATING_SYSTEM"),
    "ecc-xid-hardware-error": ("NVML_ERROR_CORRUPTED_INFOROM", "NVML_ERROR_INSUFFICIENT_POWER"),
    "cudnn-init-failed-oom": (
        "CUSOLVER_STATUS_NOT_INITIALIZED",
        "CUSOLVER_STATUS_ALLOC_FAILED",
        "CUSPARSE_STATUS_NOT_INITIALIZED",
        "CUSPARSE_STATUS_ALLOC_FAILED",
        "CURAND_STATUS_INITIALIZATION_FAILED",
        "CURAND_STATUS_ALLOCATION_FAILED",
    ),
}


def _names(number: int) -> tuple[str, ...]:
    row = next(row for row in STATUSES if row.number == number)
    runtime = (f"cudaError{row.runtime}",) if row.runtime else ()
    return (*runtime, f"CUDA_ERROR_{row.driver}") if row.driver else runtime


FAMILIES: dict[str, frozenset[str]] = {
    slug: frozenset(
        (
            *(name for number in _BY_NUMBER.get(slug, ()) for name in _names(number)),
            *_BY_NAME.get(slug, ()),
        )
    )
    for slug in (*_BY_NUMBER, *(slug for slug in _BY_NAME if slug not in _BY_NUMBER))
}
"""For each cause, the names of the codes that suggest it."""
