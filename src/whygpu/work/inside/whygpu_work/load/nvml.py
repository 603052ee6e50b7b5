"""What NVML says about a GPU at this moment, without the bindings that the target may lack."""

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TEMPERATURE_OF_GPU = 0
CLOCK_OF_MULTIPROCESSORS = 1
COUNTED = (0, 7)
"""Success, or NVML_ERROR_INSUFFICIENT_SIZE: both set the count of processes."""
LISTS_OF_PROCESSES = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetComputeRunningProcesses",
)
"""The newest first; drivers have those of their time and before."""


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class Nvml(object):
    """One GPU. A question that is not answered is None."""

    def __init__(self, address: str) -> None:
        self._handle = ctypes.c_void_p()
        self._library: "Any" = None
        try:
            library = ctypes.CDLL("libnvidia-ml.so.1")
            found = (
                library.nvmlInit_v2() == 0
                and library.nvmlDeviceGetHandleByPciBusId_v2(
                    address.encode("ascii"), ctypes.byref(self._handle)
                )
                == 0
            )
        except (OSError, AttributeError):
            found = False
        if found:
            self._library = library

    def busy_percent(self) -> "int | None":
        """The share of the last moment in which something ran on the GPU."""
        rates = _Utilization()
        return rates.gpu if self._ask("nvmlDeviceGetUtilizationRates", rates) else None

    def state(self) -> "dict[str, int | None]":
        """The fields of StressStateMessage."""
        return {
            "clock_mhz": self._number("nvmlDeviceGetClockInfo", CLOCK_OF_MULTIPROCESSORS),
            "milliwatts": self._number("nvmlDeviceGetPowerUsage"),
            "celsius": self._number("nvmlDeviceGetTemperature", TEMPERATURE_OF_GPU),
            "slowdowns": self._number("nvmlDeviceGetCurrentClocksThrottleReasons", wide=True),
            "pcie_generation": self._number("nvmlDeviceGetCurrPcieLinkGeneration"),
            "pcie_width": self._number("nvmlDeviceGetCurrPcieLinkWidth"),
            "processes": self._processes(),
        }

    def _processes(self) -> "int | None":
        """How many compute on it. None if not even this one is listed, as in some containers."""
        for name in LISTS_OF_PROCESSES:
            question = getattr(self._library, name, None)
            if question is not None:
                count = ctypes.c_uint(0)
                answer = question(self._handle, ctypes.byref(count), None)
                return count.value if answer in COUNTED and count.value > 0 else None
        return None

    def _number(self, function: str, *arguments: int, wide: bool = False) -> "int | None":
        value = ctypes.c_ulonglong() if wide else ctypes.c_uint()
        return value.value if self._ask(function, value, *arguments) else None

    def _ask(self, function: str, answer: "Any", *arguments: int) -> bool:
        question = getattr(self._library, function, None)
        if question is None:
            return False
        return bool(question(self._handle, *arguments + (ctypes.byref(answer),)) == 0)
