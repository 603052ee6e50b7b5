"""Messages that people type by hand, from a screenshot or from memory, with mistakes.

Each is the part of a message that a cause looks for. A cause decides what it means; this table only
says how it is spelt. Sources are the programs' own messages, which the examples on the pages of the
causes show.
"""

from __future__ import annotations

MESSAGES: tuple[str, ...] = (
    "CUDA error",
    "Torch not compiled with CUDA enabled",
    "CUDA out of memory",
    "Tried to allocate",
    "OOM when allocating tensor with shape",
    "by allocator GPU_0_bfc",
    "no CUDA-capable device is detected",
    "no kernel image is available for execution on the device",
    "invalid device ordinal",
    "device-side assert triggered",
    "an illegal memory access was encountered",
    "unspecified launch failure",
    "all CUDA-capable devices are busy or unavailable",
    "CUDA driver version is insufficient for CUDA runtime version",
    "The NVIDIA driver on your system is too old",
    "Found no NVIDIA driver on your system",
    "No CUDA GPUs are available",
    "CUDA unknown error - this may be due to an incorrectly set up environment",
    "Could not load dynamic library",
    "cannot open shared object file: No such file or directory",
    "Cannot dlopen some GPU libraries",
    "Could not find cuda drivers on your machine, GPU will not be used",
    "failed call to cuInit",
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
    "Failed to initialize NVML: Driver/library version mismatch",
    "No devices were found",
    "Failed to get convolution algorithm",
    "This is probably because cuDNN failed to initialize",
    "Could not create cudnn handle",
    "Loaded runtime CuDNN library",
    "but source was compiled with",
    "DNN library is not found",
    "Unable to find a valid cuDNN algorithm to run convolution",
    "Cannot assign a device for operation",
    "is not compatible with the current PyTorch installation",
    "PyTorch no longer supports this GPU because it is too old",
    "a CUDA-enabled jaxlib is not installed. Falling back to cpu",
    "Expected all tensors to be on the same device",
    "Cannot re-initialize CUDA in forked subprocess",
    "Attempting to deserialize object on a CUDA device",
    'could not select device driver "" with capabilities: [[gpu]]',
    "module 'tensorflow' has no attribute 'Session'",
    "Illegal instruction (core dumped)",
    "DLL load failed while importing",
    "A module that was compiled using NumPy 1.x cannot be run in NumPy",
)
EXCEPTIONS = (
    "RuntimeError",
    "ImportError",
    "AssertionError",
    "AttributeError",
    "InternalError",
    "UnknownError",
    "InvalidArgumentError",
    "ResourceExhaustedError",
    "FailedPreconditionError",
    "OutOfMemoryError",
    "ModuleNotFoundError",
)
