"""The GPUs in the order in which CUDA numbers them, as the driver describes them."""

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMPUTE_CAPABILITY_MAJOR = 75
COMPUTE_CAPABILITY_MINOR = 76


def addresses() -> "list[str]":
    """The PCI address of each GPU that this process sees: 0000:3b:00.0."""
    cuda = _driver()
    found = []
    for ordinal in range(_count(cuda)):
        text = ctypes.create_string_buffer(64)
        _check(cuda.cuDeviceGetPCIBusId(text, len(text), _device(cuda, ordinal)))
        found.append(text.value.decode("ascii", "replace").lower())
    return found


def capability(address: str) -> "tuple[int, int]":
    """The compute capability of the GPU at an address."""
    cuda = _driver()
    device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    _check(cuda.cuDeviceGetByPCIBusId(ctypes.byref(device), address.encode("ascii")))
    for value, attribute in ((major, COMPUTE_CAPABILITY_MAJOR), (minor, COMPUTE_CAPABILITY_MINOR)):
        _check(cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device))
    return major.value, minor.value


def _driver() -> "Any":
    cuda = ctypes.CDLL("libcuda.so.1")
    _check(cuda.cuInit(0))
    return cuda


def _count(cuda: "Any") -> int:
    count = ctypes.c_int()
    _check(cuda.cuDeviceGetCount(ctypes.byref(count)))
    return count.value


def _device(cuda: "Any", ordinal: int) -> "Any":
    device = ctypes.c_int()
    _check(cuda.cuDeviceGet(ctypes.byref(device), ordinal))
    return device


def _check(code: int) -> None:
    if code != 0:
        raise OSError("the CUDA driver answers with error %d" % code)
