"""What the CUDA driver reports, without any framework."""

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .harness import Report, Sums

COMPUTE_CAPABILITY_MAJOR = 75
COMPUTE_CAPABILITY_MINOR = 76
NO_DEVICE = 100

# For drivers that cannot name their own errors.
ERROR_NAMES = {
    0: "CUDA_SUCCESS",
    1: "CUDA_ERROR_INVALID_VALUE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    304: "CUDA_ERROR_OPERATING_SYSTEM",
    802: "CUDA_ERROR_SYSTEM_NOT_READY",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    804: "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
    999: "CUDA_ERROR_UNKNOWN",
}


class DriverError(Exception):
    pass


def probe(report: "Report", sums: "Sums") -> None:
    report.stage("load libcuda.so.1")
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        report.fact("libcuda.so.1", error)
        report.no_version(error)
        report.no_devices(error)
        return
    report.fact("libcuda.so.1", "loaded")

    # It works without cuInit, so also on a machine where cuInit fails.
    report.stage("cuDriverGetVersion")
    number = ctypes.c_int()
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        report.version("%d.%d" % (number.value // 1000, number.value % 1000 // 10))

    report.stage("cuInit")
    code = cuda.cuInit(0)
    report.fact("cuInit", named(cuda, code))
    if code == NO_DEVICE:
        report.devices([])
    elif code != 0:
        report.unknown_devices("cuInit: " + named(cuda, code))
    else:
        report.stage("devices")
        try:
            report.devices(devices(cuda))
        except DriverError as error:
            report.unknown_devices(error)


def devices(cuda: "Any") -> "list[tuple[str, str]]":
    count = ctypes.c_int()
    check(cuda, "cuDeviceGetCount", cuda.cuDeviceGetCount(ctypes.byref(count)))
    return [("cuda:%d" % index, describe(cuda, index)) for index in range(count.value)]


def describe(cuda: "Any", index: int) -> str:
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    check(cuda, "cuDeviceGet", cuda.cuDeviceGet(ctypes.byref(device), index))
    check(cuda, "cuDeviceGetName", cuda.cuDeviceGetName(name, len(name), device))
    major, minor = (
        attribute(cuda, device, number)
        for number in (COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR)
    )
    text = name.value.decode("ascii", "replace")
    return "%s, compute capability %d.%d" % (text, major, minor)


def attribute(cuda: "Any", device: "Any", number: int) -> int:
    value = ctypes.c_int()
    code = cuda.cuDeviceGetAttribute(ctypes.byref(value), number, device)
    check(cuda, "cuDeviceGetAttribute", code)
    return value.value


def check(cuda: "Any", call: str, code: int) -> None:
    if code != 0:
        raise DriverError("%s: %s" % (call, named(cuda, code)))


def named(cuda: "Any", code: int) -> str:
    """A result code with its name: 100 CUDA_ERROR_NO_DEVICE."""
    name = ctypes.c_char_p()
    get_name = getattr(cuda, "cuGetErrorName", None)
    if get_name is not None and get_name(code, ctypes.byref(name)) == 0 and name.value:
        return "%d %s" % (code, name.value.decode("ascii", "replace"))
    return ("%d %s" % (code, ERROR_NAMES.get(code, ""))).strip()
