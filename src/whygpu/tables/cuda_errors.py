"""What the error codes of cuInit mean, and what to do about each."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.remedy import PYTHON, Action, shell_script

_CODES = "https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html"
_COMPATIBILITY = "https://docs.nvidia.com/deploy/cuda-compatibility/"
_WSL = "https://docs.nvidia.com/cuda/wsl-user-guide"
_SUSPEND = "https://github.com/pytorch/pytorch/issues/88639"


class CudaError(NamedTuple):
    code: int
    name: str
    meaning: str
    """What it means for the machine, as the rest of a sentence that starts with the code."""
    advice: str
    action: Action | None
    source: str


CUDA_ERRORS = (
    CudaError(
        1,
        "CUDA_ERROR_INVALID_VALUE",
        "the driver does not accept how it was started",
        "Check the variables that begin with CUDA_ and try without them.",
        shell_script("env | grep '^CUDA_'"),
        _CODES,
    ),
    CudaError(
        2,
        "CUDA_ERROR_OUT_OF_MEMORY",
        "the driver has too little memory to start, on the GPU or on the host",
        "Check which processes hold the memory; a limit of the address space (ulimit -v) has the "
        "same effect.",
        shell_script("nvidia-smi; ulimit -v"),
        _CODES,
    ),
    CudaError(
        3,
        "CUDA_ERROR_NOT_INITIALIZED",
        "the driver could not open its device nodes or start its kernel module",
        "Reload the module nvidia_uvm and check the kernel log for errors.",
        shell_script("sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm; sudo dmesg | tail"),
        _CODES,
    ),
    CudaError(
        34,
        "CUDA_ERROR_STUB_LIBRARY",
        "the loaded libcuda.so.1 is the CUDA toolkit's stub, which is only for linking",
        "Remove the toolkit's stubs folder from LD_LIBRARY_PATH.",
        shell_script('echo "$LD_LIBRARY_PATH"'),
        _CODES,
    ),
    CudaError(
        36,
        "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER",
        "the driver is older than the called function",
        "Update the NVIDIA driver.",
        None,
        _CODES,
    ),
    CudaError(
        46,
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "the GPU is busy, or its compute mode allows no further process",
        "Check the compute mode and which processes use the GPU.",
        shell_script("nvidia-smi --query-gpu=index,compute_mode --format=csv; nvidia-smi"),
        _CODES,
    ),
    CudaError(
        100,
        "CUDA_ERROR_NO_DEVICE",
        "the driver works, but has no GPU for this process",
        "Check which GPUs nvidia-smi lists, and which of them CUDA_VISIBLE_DEVICES leaves visible.",
        shell_script('nvidia-smi -L; echo "$CUDA_VISIBLE_DEVICES"'),
        _CODES,
    ),
    CudaError(
        101,
        "CUDA_ERROR_INVALID_DEVICE",
        "the requested GPU does not exist, or is divided (MIG) in another way than requested",
        "Compare CUDA_VISIBLE_DEVICES with the listed GPUs. A CUDA_DEVICE_ORDER other than "
        "PCI_BUS_ID and FASTEST_FIRST has the same effect.",
        shell_script('nvidia-smi -L; echo "$CUDA_VISIBLE_DEVICES" "$CUDA_DEVICE_ORDER"'),
        _CODES,
    ),
    CudaError(
        304,
        "CUDA_ERROR_OPERATING_SYSTEM",
        "a call to the operating system failed: it could not open a device node or map memory, or "
        "a limit or sandbox forbids it",
        "Find the call that fails.",
        shell_script(
            "strace -f -e trace=openat,ioctl,mmap ",
            PYTHON,
            " -c 'import ctypes; ctypes.CDLL(\"libcuda.so.1\").cuInit(0)' 2>&1 "
            "| grep -B2 -A2 EPERM",
        ),
        _CODES,
    ),
    CudaError(
        500,
        "CUDA_ERROR_NOT_FOUND",
        "the driver did not find one of its parts; under WSL, the Windows driver",
        "Update the driver, under WSL the one of Windows, and then WSL itself (wsl --update).",
        None,
        _WSL,
    ),
    CudaError(
        802,
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "the GPUs are there, but the system is not ready; on machines with NVSwitch the fabric "
        "manager must be running",
        "Start the fabric manager; it must have exactly the driver's version.",
        shell_script("sudo systemctl enable --now nvidia-fabricmanager"),
        _CODES,
    ),
    CudaError(
        803,
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "libcuda.so.1 and the loaded kernel module have different versions",
        "Restart the machine; if that does not help, look for a second libcuda.so.1.",
        shell_script("ldconfig -p | grep libcuda; cat /proc/driver/nvidia/version"),
        _COMPATIBILITY,
    ),
    CudaError(
        804,
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "a forward-compatibility libcuda.so.1 (package cuda-compat) was loaded, which works "
        "only with data-centre GPUs",
        "Remove the folder 'compat' from the library path, so that the driver's own libcuda.so.1 "
        "is found.",
        shell_script('ldconfig -p | grep libcuda; echo "$LD_LIBRARY_PATH"'),
        _COMPATIBILITY,
    ),
    CudaError(
        999,
        "CUDA_ERROR_UNKNOWN",
        "the driver gives no reason; most often its module nvidia_uvm is in a bad state, as after "
        "the machine was suspended, or a device node is missing",
        "End all CUDA programs and reload the module; if that does not help, restart.",
        shell_script("sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm"),
        _SUSPEND,
    ),
)


def cuda_error(code: int) -> CudaError | None:
    """The row of one code; None if there is none."""
    return next((row for row in CUDA_ERRORS if row.code == code), None)
