"""Every error of CUDA's runtime and driver: its number, its names, and its message.

Since CUDA 10.1 both interfaces use the same numbers. Each error has a name in either interface, or
in one of them. The rows are those of cuda.h of CUDA 12.9 and of cudaGetErrorName and
cudaGetErrorString of CUDA 13.0, without those of profilers and of texture references.
"""

from __future__ import annotations

from typing import NamedTuple

SOURCE = "https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html"


class CudaStatus(NamedTuple):
    number: int
    runtime: str
    """The name after cudaError; empty if only the driver has it."""
    driver: str
    """The name after CUDA_ERROR_; empty if only the runtime has it."""
    message: str
    """What cudaGetErrorString returns, or how a long message begins."""


STATUSES = (
    CudaStatus(1, "InvalidValue", "INVALID_VALUE", "invalid argument"),
    CudaStatus(2, "MemoryAllocation", "OUT_OF_MEMORY", "out of memory"),
    CudaStatus(3, "InitializationError", "NOT_INITIALIZED", "initialization error"),
    CudaStatus(4, "CudartUnloading", "DEINITIALIZED", "driver shutting down"),
    CudaStatus(9, "InvalidConfiguration", "", "invalid configuration argument"),
    CudaStatus(12, "InvalidPitchValue", "", "invalid pitch argument"),
    CudaStatus(13, "InvalidSymbol", "", "invalid device symbol"),
    CudaStatus(16, "InvalidHostPointer", "", "invalid host pointer"),
    CudaStatus(17, "InvalidDevicePointer", "", "invalid device pointer"),
    CudaStatus(21, "InvalidMemcpyDirection", "", "invalid copy direction for memcpy"),
    CudaStatus(34, "StubLibrary", "STUB_LIBRARY", "CUDA driver is a stub library"),
    CudaStatus(
        35, "InsufficientDriver", "", "CUDA driver version is insufficient for CUDA runtime version"
    ),
    CudaStatus(
        36, "CallRequiresNewerDriver", "", "API call is not supported in the installed CUDA driver"
    ),
    CudaStatus(
        46,
        "DevicesUnavailable",
        "DEVICE_UNAVAILABLE",
        "CUDA-capable device(s) is/are busy or unavailable",
    ),
    CudaStatus(49, "IncompatibleDriverContext", "", "incompatible driver context"),
    CudaStatus(52, "MissingConfiguration", "", "__global__ function call is not configured"),
    CudaStatus(53, "PriorLaunchFailure", "", "unspecified launch failure in prior launch"),
    CudaStatus(98, "InvalidDeviceFunction", "", "invalid device function"),
    CudaStatus(100, "NoDevice", "NO_DEVICE", "no CUDA-capable device is detected"),
    CudaStatus(101, "InvalidDevice", "INVALID_DEVICE", "invalid device ordinal"),
    CudaStatus(
        102, "DeviceNotLicensed", "DEVICE_NOT_LICENSED", "device doesn't have valid Grid license"
    ),
    CudaStatus(103, "SoftwareValidityNotEstablished", "", "integrity checks failed"),
    CudaStatus(127, "StartupFailure", "", "startup failure in cuda runtime"),
    CudaStatus(200, "InvalidKernelImage", "INVALID_IMAGE", "device kernel image is invalid"),
    CudaStatus(201, "DeviceUninitialized", "INVALID_CONTEXT", "invalid device context"),
    CudaStatus(202, "", "CONTEXT_ALREADY_CURRENT", ""),
    CudaStatus(205, "MapBufferObjectFailed", "MAP_FAILED", "mapping of buffer object failed"),
    CudaStatus(206, "UnmapBufferObjectFailed", "UNMAP_FAILED", "unmapping of buffer object failed"),
    CudaStatus(
        209,
        "NoKernelImageForDevice",
        "NO_BINARY_FOR_GPU",
        "no kernel image is available for execution on the device",
    ),
    CudaStatus(214, "ECCUncorrectable", "ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"),
    CudaStatus(
        215, "UnsupportedLimit", "UNSUPPORTED_LIMIT", "limit is not supported on this architecture"
    ),
    CudaStatus(
        216,
        "DeviceAlreadyInUse",
        "CONTEXT_ALREADY_IN_USE",
        "exclusive-thread device already in use by a different thread",
    ),
    CudaStatus(
        217,
        "PeerAccessUnsupported",
        "PEER_ACCESS_UNSUPPORTED",
        "peer access is not supported between these two devices",
    ),
    CudaStatus(218, "InvalidPtx", "INVALID_PTX", "a PTX JIT compilation failed"),
    CudaStatus(
        219,
        "InvalidGraphicsContext",
        "INVALID_GRAPHICS_CONTEXT",
        "invalid OpenGL or DirectX context",
    ),
    CudaStatus(
        220,
        "NvlinkUncorrectable",
        "NVLINK_UNCORRECTABLE",
        "uncorrectable NVLink error detected during the execution",
    ),
    CudaStatus(
        221, "JitCompilerNotFound", "JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"
    ),
    CudaStatus(
        222,
        "UnsupportedPtxVersion",
        "UNSUPPORTED_PTX_VERSION",
        "the provided PTX was compiled with an unsupported toolchain",
    ),
    CudaStatus(
        223,
        "JitCompilationDisabled",
        "JIT_COMPILATION_DISABLED",
        "PTX JIT compilation was disabled",
    ),
    CudaStatus(
        224,
        "UnsupportedExecAffinity",
        "UNSUPPORTED_EXEC_AFFINITY",
        "the provided execution affinity is not supported",
    ),
    CudaStatus(
        225,
        "UnsupportedDevSideSync",
        "UNSUPPORTED_DEVSIDE_SYNC",
        "the provided PTX contains unsupported call",
    ),
    CudaStatus(226, "Contained", "", "Invalid access of peer GPU memory over nvlink"),
    CudaStatus(300, "InvalidSource", "INVALID_SOURCE", "device kernel image is invalid"),
    CudaStatus(301, "FileNotFound", "FILE_NOT_FOUND", "file not found"),
    CudaStatus(
        302,
        "SharedObjectSymbolNotFound",
        "SHARED_OBJECT_SYMBOL_NOT_FOUND",
        "shared object symbol not found",
    ),
    CudaStatus(
        303,
        "SharedObjectInitFailed",
        "SHARED_OBJECT_INIT_FAILED",
        "shared object initialization failed",
    ),
    CudaStatus(
        304,
        "OperatingSystem",
        "OPERATING_SYSTEM",
        "OS call failed or operation not supported on this OS",
    ),
    CudaStatus(400, "InvalidResourceHandle", "INVALID_HANDLE", "invalid resource handle"),
    CudaStatus(
        401,
        "IllegalState",
        "ILLEGAL_STATE",
        "the operation cannot be performed in the present state",
    ),
    CudaStatus(
        402, "LossyQuery", "LOSSY_QUERY", "attempted introspection would be semantically lossy"
    ),
    CudaStatus(500, "SymbolNotFound", "NOT_FOUND", "named symbol not found"),
    CudaStatus(600, "NotReady", "NOT_READY", "device not ready"),
    CudaStatus(
        700, "IllegalAddress", "ILLEGAL_ADDRESS", "an illegal memory access was encountered"
    ),
    CudaStatus(
        701,
        "LaunchOutOfResources",
        "LAUNCH_OUT_OF_RESOURCES",
        "too many resources requested for launch",
    ),
    CudaStatus(702, "LaunchTimeout", "LAUNCH_TIMEOUT", "the launch timed out and was terminated"),
    CudaStatus(
        703,
        "LaunchIncompatibleTexturing",
        "LAUNCH_INCOMPATIBLE_TEXTURING",
        "launch uses incompatible texturing mode",
    ),
    CudaStatus(
        704,
        "PeerAccessAlreadyEnabled",
        "PEER_ACCESS_ALREADY_ENABLED",
        "peer access is already enabled",
    ),
    CudaStatus(
        705, "PeerAccessNotEnabled", "PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"
    ),
    CudaStatus(
        708,
        "SetOnActiveProcess",
        "PRIMARY_CONTEXT_ACTIVE",
        "cannot set while device is active in this process",
    ),
    CudaStatus(709, "ContextIsDestroyed", "CONTEXT_IS_DESTROYED", "context is destroyed"),
    CudaStatus(710, "Assert", "ASSERT", "device-side assert triggered"),
    CudaStatus(711, "TooManyPeers", "TOO_MANY_PEERS", "peer mapping resources exhausted"),
    CudaStatus(
        712,
        "HostMemoryAlreadyRegistered",
        "HOST_MEMORY_ALREADY_REGISTERED",
        "part or all of the requested memory range",
    ),
    CudaStatus(
        713,
        "HostMemoryNotRegistered",
        "HOST_MEMORY_NOT_REGISTERED",
        "pointer does not correspond to a registered",
    ),
    CudaStatus(714, "HardwareStackError", "HARDWARE_STACK_ERROR", "hardware stack error"),
    CudaStatus(
        715, "IllegalInstruction", "ILLEGAL_INSTRUCTION", "an illegal instruction was encountered"
    ),
    CudaStatus(716, "MisalignedAddress", "MISALIGNED_ADDRESS", "misaligned address"),
    CudaStatus(
        717,
        "InvalidAddressSpace",
        "INVALID_ADDRESS_SPACE",
        "operation not supported on global/shared address space",
    ),
    CudaStatus(718, "InvalidPc", "INVALID_PC", "invalid program counter"),
    CudaStatus(719, "LaunchFailure", "LAUNCH_FAILED", "unspecified launch failure"),
    CudaStatus(
        720,
        "CooperativeLaunchTooLarge",
        "COOPERATIVE_LAUNCH_TOO_LARGE",
        "too many blocks in cooperative launch",
    ),
    CudaStatus(721, "TensorMemoryLeak", "", "tensor memory not completely freed"),
    CudaStatus(800, "NotPermitted", "NOT_PERMITTED", "operation not permitted"),
    CudaStatus(801, "NotSupported", "NOT_SUPPORTED", "operation not supported"),
    CudaStatus(802, "SystemNotReady", "SYSTEM_NOT_READY", "system not yet initialized"),
    CudaStatus(
        803,
        "SystemDriverMismatch",
        "SYSTEM_DRIVER_MISMATCH",
        "system has unsupported display driver / cuda driver combination",
    ),
    CudaStatus(
        804,
        "CompatNotSupportedOnDevice",
        "COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "forward compatibility was attempted on non supported HW",
    ),
    CudaStatus(
        805,
        "MpsConnectionFailed",
        "MPS_CONNECTION_FAILED",
        "MPS client failed to connect to the MPS",
    ),
    CudaStatus(
        806, "MpsRpcFailure", "MPS_RPC_FAILURE", "the remote procedural call between the MPS"
    ),
    CudaStatus(807, "MpsServerNotReady", "MPS_SERVER_NOT_READY", "MPS server is not ready"),
    CudaStatus(
        808,
        "MpsMaxClientsReached",
        "MPS_MAX_CLIENTS_REACHED",
        "the hardware resources required to create MPS client",
    ),
    CudaStatus(
        809,
        "MpsMaxConnectionsReached",
        "MPS_MAX_CONNECTIONS_REACHED",
        "the hardware resources required to support device connections",
    ),
    CudaStatus(
        810,
        "MpsClientTerminated",
        "MPS_CLIENT_TERMINATED",
        "the MPS client has been terminated by the server",
    ),
    CudaStatus(
        811,
        "CdpNotSupported",
        "CDP_NOT_SUPPORTED",
        "is using CUDA Dynamic Parallelism, but the current configuration",
    ),
    CudaStatus(
        812,
        "CdpVersionMismatch",
        "CDP_VERSION_MISMATCH",
        "unsupported interaction between different versions",
    ),
    CudaStatus(
        900,
        "StreamCaptureUnsupported",
        "STREAM_CAPTURE_UNSUPPORTED",
        "operation not permitted when stream is capturing",
    ),
    CudaStatus(
        901,
        "StreamCaptureInvalidated",
        "STREAM_CAPTURE_INVALIDATED",
        "operation failed due to a previous error during capture",
    ),
    CudaStatus(
        902, "StreamCaptureMerge", "STREAM_CAPTURE_MERGE", "operation would result in a merge"
    ),
    CudaStatus(
        903,
        "StreamCaptureUnmatched",
        "STREAM_CAPTURE_UNMATCHED",
        "capture was not ended in the same stream as it began",
    ),
    CudaStatus(
        904,
        "StreamCaptureUnjoined",
        "STREAM_CAPTURE_UNJOINED",
        "capturing stream has unjoined work",
    ),
    CudaStatus(
        905,
        "StreamCaptureIsolation",
        "STREAM_CAPTURE_ISOLATION",
        "dependency created on uncaptured work in another stream",
    ),
    CudaStatus(
        906,
        "StreamCaptureImplicit",
        "STREAM_CAPTURE_IMPLICIT",
        "operation would make the legacy stream depend",
    ),
    CudaStatus(907, "CapturedEvent", "CAPTURED_EVENT", "operation not permitted on an event"),
    CudaStatus(
        908,
        "StreamCaptureWrongThread",
        "STREAM_CAPTURE_WRONG_THREAD",
        "attempt to terminate a thread-local capture",
    ),
    CudaStatus(909, "Timeout", "TIMEOUT", "wait operation timed out"),
    CudaStatus(
        910,
        "GraphExecUpdateFailure",
        "GRAPH_EXEC_UPDATE_FAILURE",
        "the graph update was not performed",
    ),
    CudaStatus(911, "ExternalDevice", "EXTERNAL_DEVICE", "an async error has occured in external"),
    CudaStatus(
        912,
        "InvalidClusterSize",
        "INVALID_CLUSTER_SIZE",
        "a kernel launch error has occurred due to cluster",
    ),
    CudaStatus(
        913, "FunctionNotLoaded", "FUNCTION_NOT_LOADED", "the function handle is not loaded"
    ),
    CudaStatus(
        914,
        "InvalidResourceType",
        "INVALID_RESOURCE_TYPE",
        "one or more resources passed in are not valid",
    ),
    CudaStatus(
        915,
        "InvalidResourceConfiguration",
        "INVALID_RESOURCE_CONFIGURATION",
        "one or more resources are insufficient",
    ),
    CudaStatus(999, "Unknown", "UNKNOWN", "unknown error"),
)

NUMBERS_BEFORE_10_1 = {
    4: "LaunchFailure",
    5: "PriorLaunchFailure",
    6: "LaunchTimeout",
    7: "LaunchOutOfResources",
    8: "InvalidDeviceFunction",
    10: "InvalidDevice",
    11: "InvalidValue",
    14: "MapBufferObjectFailed",
    15: "UnmapBufferObjectFailed",
    30: "Unknown",
    33: "InvalidResourceHandle",
    38: "NoDevice",
    39: "ECCUncorrectable",
    40: "SharedObjectSymbolNotFound",
    41: "SharedObjectInitFailed",
    42: "UnsupportedLimit",
    47: "InvalidKernelImage",
    48: "NoKernelImageForDevice",
    50: "PeerAccessAlreadyEnabled",
    51: "PeerAccessNotEnabled",
    54: "DeviceAlreadyInUse",
    59: "Assert",
    60: "TooManyPeers",
    61: "HostMemoryAlreadyRegistered",
    62: "HostMemoryNotRegistered",
    63: "OperatingSystem",
    64: "PeerAccessUnsupported",
    70: "NotPermitted",
    71: "NotSupported",
    72: "HardwareStackError",
    73: "IllegalInstruction",
    74: "MisalignedAddress",
    75: "InvalidAddressSpace",
    76: "InvalidPc",
    77: "IllegalAddress",
    78: "InvalidPtx",
    79: "InvalidGraphicsContext",
    80: "NvlinkUncorrectable",
    81: "JitCompilerNotFound",
    82: "CooperativeLaunchTooLarge",
}
"""The runtime's numbers that changed in CUDA 10.1. Where a number has had two meanings, the older
one counts: today these numbers belong to profilers and to processes that end."""

CUDNN_NUMBERS = {
    1: "NOT_INITIALIZED",
    2: "ALLOC_FAILED",
    3: "BAD_PARAM",
    4: "INTERNAL_ERROR",
    5: "INVALID_VALUE",
    6: "ARCH_MISMATCH",
    7: "MAPPING_ERROR",
    8: "EXECUTION_FAILED",
    9: "NOT_SUPPORTED",
    10: "LICENSE_ERROR",
    11: "RUNTIME_PREREQUISITE_MISSING",
    13: "RUNTIME_FP_OVERFLOW",
    14: "VERSION_MISMATCH",
}
"""cuDNN 8 and older. From release 9 on, the numbers have four digits, and logs have the names."""

CUBLAS_NUMBERS = {
    1: "NOT_INITIALIZED",
    3: "ALLOC_FAILED",
    7: "INVALID_VALUE",
    8: "ARCH_MISMATCH",
    11: "MAPPING_ERROR",
    13: "EXECUTION_FAILED",
    14: "INTERNAL_ERROR",
    15: "NOT_SUPPORTED",
    16: "LICENSE_ERROR",
}
CUBLAS_MESSAGES = {
    "the library was not initialized": "NOT_INITIALIZED",
    "the resource allocation failed": "ALLOC_FAILED",
    "an unsupported value or parameter was passed to the function": "INVALID_VALUE",
    "an invalid numeric value was used as an argument": "INVALID_VALUE",
    "an absent device architectural feature is required": "ARCH_MISMATCH",
    "an access to gpu memory space failed": "MAPPING_ERROR",
    "the gpu program failed to execute": "EXECUTION_FAILED",
    "an internal operation failed": "INTERNAL_ERROR",
    "the requested functionality is not supported": "NOT_SUPPORTED",
}
"""What cublasGetStatusString returns, in lower case, and what older programs print instead."""

NVML_NUMBERS = {
    1: "UNINITIALIZED",
    2: "INVALID_ARGUMENT",
    3: "NOT_SUPPORTED",
    4: "NO_PERMISSION",
    6: "NOT_FOUND",
    8: "INSUFFICIENT_POWER",
    9: "DRIVER_NOT_LOADED",
    10: "TIMEOUT",
    11: "IRQ_ISSUE",
    12: "LIBRARY_NOT_FOUND",
    13: "FUNCTION_NOT_FOUND",
    14: "CORRUPTED_INFOROM",
    15: "GPU_IS_LOST",
    16: "RESET_REQUIRED",
    17: "OPERATING_SYSTEM",
    18: "LIB_RM_VERSION_MISMATCH",
    19: "IN_USE",
    20: "MEMORY",
    28: "GPU_NOT_FOUND",
    999: "UNKNOWN",
}
