"""What a log shows about the kernel module of the NVIDIA driver."""

from __future__ import annotations

from whygpu.causes.evidence.log_cuda_start import UNKNOWN, in_order, lines_of, lines_with, named
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log

MODULE_ERRORS = late(
    r"modprobe: (?:ERROR|FATAL): [^\n]{0,80}nvidia|could not insert '?nvidia"
    r"|Unable to load the kernel module 'nvidia|Kernel module load error: "
    r"|nvidia[^\n]{0,40}: Key was rejected by service|RmInitAdapter failed|rm_init_adapter failed"
    r"|performing the step: \"(?:Building kernel modules|Checking to see whether the nvidia)"
    r"|Unable to build the NVIDIA kernel module|Bad return status for module build on kernel"
    r"|Nouveau kernel driver is currently in use by your system"
    r"|The NVIDIA probe routine (?:failed|was not called)|No NVIDIA (?:graphics adapter"
    r"|devices) found"
    r"|does not support CUDA Virtual Memory Management|(?:[Ff]abric [Mm]anager|nv-fabricmanager)"
    r"[^\n]{0,60}(?:fail|not running|error)|NVRM: request_irq\(\) failed"
    r"|kernel module '?nvidia'? (?:is )?not (?:found|loaded)|Module nvidia[\w-]{0,20} not found"
    # Packages that build the module: of Debian, of Fedora, and of the kernel's own builder.
    r"|error processing package nvidia-(?:dkms|kernel)[\w-]{0,40}|akmod-nvidia[^\n]{0,80}failed"
    r"|dkms[^\n]{0,80}\bnvidia/\d[^\n]{0,80}(?:[Ff]ail|[Ee]rror|exit status: [1-9])"
    # Of any module; the next messages name it.
    r"|Loading of (?:unsigned module|module with unavailable key) is rejected"
    r"(?=(?:[^\n]{0,200}\n){1,3}?[^\n]{0,200}(?:nvidia|NVRM))"
)
BUSY = ("cudaErrorDevicesUnavailable", "CUDA_ERROR_DEVICE_UNAVAILABLE")
COMPUTE_MODES = late(
    r"\b(?:E\. ?(?:Process|Thread)|Exclusive_Process|EXCLUSIVE_PROCESS|Prohibited)\b"
)
"""Compute modes that do not let every process use a GPU."""

_PROPERTIES = late(
    r"[Ff]ailed to get device properties, error code: (?:30|999)\b"
    r"|NVML_SUCCESS == [^\n]{0,60}nvmlInit\w{0,8}\(\) INTERNAL ASSERT FAILED"
)
"""The call failed for a GPU that was ready before, or that CUDA has opened."""


def refused_without_reason(log: Log) -> tuple[int, ...]:
    """The driver refused a call without a reason, nothing else gives one, and no work followed."""
    lines = in_order((*lines_with(log, _PROPERTIES), *lines_of(named(log, UNKNOWN))))
    if not lines or any(line > lines[0] for line in log.progress):
        return ()
    if any(device.event == "ready" and device.line < lines[0] for device in log.devices):
        # This process has just started CUDA on the GPU, for which it needs the module.
        return ()
    failed_lines = log.failed_lines()
    return lines if not failed_lines or failed_lines.intersection(lines) else ()
