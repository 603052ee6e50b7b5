"""What NVML says about the GPUs that CUDA shows to this process, while it runs.

Nothing is started for it: the CUDA driver is only asked if the program has loaded and initialised
it, and NVML starts no context on a GPU.
"""

import ctypes
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EVERY = 0.5
"""Seconds between two readings."""
MOST_GPUS = 16
MOST_READINGS = 2000
MOST_PROCESSES = 64
SM_CLOCK = 1


class _Utilization(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class GpuState:
    """Readings of each GPU, by the number that CUDA gives it in this process."""

    def __init__(self) -> None:
        self._nvml: "Any" = None
        self._gpus: "list[dict[str, Any]]" = []
        self._due = 0.0
        self.spent = 0.0

    def look(self, now: float) -> None:
        """Take a reading if it is time. Called by the sampler's thread."""
        if now < self._due:
            return
        self._due = now + EVERY
        before = time.perf_counter()
        if self._nvml is None:
            self._open()
        for gpu in self._gpus:
            self._read(gpu, now)
        self.spent += time.perf_counter() - before

    def _open(self) -> None:
        addresses = _addresses()
        if not addresses:
            return
        try:
            nvml = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            self._due = float("inf")
            return
        if nvml.nvmlInit_v2():
            self._due = float("inf")
            return
        self._nvml = nvml
        for number, address in enumerate(addresses):
            handle = ctypes.c_void_p()
            if nvml.nvmlDeviceGetHandleByPciBusId_v2(address, ctypes.byref(handle)) == 0:
                self._gpus.append({"number": number, "handle": handle, "readings": []})

    def _read(self, gpu: "dict[str, Any]", now: float) -> None:
        handle, readings = gpu["handle"], gpu["readings"]
        used = _Utilization()
        known = self._nvml.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(used)) == 0
        readings.append(
            {
                "time": round(now, 3),
                "utilization": used.gpu if known else None,
                "clock_mhz": self._number("nvmlDeviceGetClockInfo", handle, SM_CLOCK),
                "reasons": self._reasons(handle),
            }
        )
        if len(readings) > MOST_READINGS:
            del readings[::2]

    def _reasons(self, handle: "Any") -> "int | None":
        """Why the clock is what it is, as bits. Drivers before 535 use the other name."""
        for name in (
            "nvmlDeviceGetCurrentClocksEventReasons",
            "nvmlDeviceGetCurrentClocksThrottleReasons",
        ):
            value = ctypes.c_ulonglong()
            call = getattr(self._nvml, name, None)
            if call is not None and call(handle, ctypes.byref(value)) == 0:
                return value.value
        return None

    def _number(self, name: str, handle: "Any", *arguments: int) -> "int | None":
        value = ctypes.c_uint()
        call = getattr(self._nvml, name, None)
        if call is None or call(handle, *arguments, ctypes.byref(value)):
            return None
        return int(value.value)

    def _processes(self, handle: "Any") -> "list[dict[str, Any]] | None":
        """The processes that compute on the GPU, or could; None if NVML cannot tell."""
        call = getattr(self._nvml, "nvmlDeviceGetComputeRunningProcesses_v3", None)
        count = ctypes.c_uint(MOST_PROCESSES)
        found = (_Process * MOST_PROCESSES)()
        if call is None or call(handle, ctypes.byref(count), found):
            return None
        return [
            # All bits are set if the size is not known.
            {"pid": each.pid, "memory_bytes": each.memory if each.memory < 1 << 60 else 0}
            for each in found[: count.value]
        ]

    def look_at_processes(self) -> None:
        """Which processes have the GPUs open now: at the end, others may be gone."""
        for gpu in self._gpus:
            gpu["processes"] = self._processes(gpu["handle"])

    def result(self) -> "list[dict[str, Any]]":
        return [
            {
                "number": gpu["number"],
                "most_clock_mhz": self._number(
                    "nvmlDeviceGetMaxClockInfo", gpu["handle"], SM_CLOCK
                ),
                "pcie_generation": self._number(
                    "nvmlDeviceGetCurrPcieLinkGeneration", gpu["handle"]
                ),
                "pcie_width": self._number("nvmlDeviceGetCurrPcieLinkWidth", gpu["handle"]),
                "processes": gpu.get("processes"),
                "pid": os.getpid(),
                "readings": gpu["readings"],
            }
            for gpu in self._gpus
        ]


def _addresses() -> "list[bytes]":
    """The PCI addresses of the GPUs that CUDA shows; none unless CUDA is in use already."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1", mode=getattr(os, "RTLD_NOLOAD", 4) | os.RTLD_NOW)
    except OSError:
        return []
    count = ctypes.c_int()
    if cuda.cuDeviceGetCount(ctypes.byref(count)):
        return []
    found = []
    for number in range(min(count.value, MOST_GPUS)):
        text = ctypes.create_string_buffer(32)
        if cuda.cuDeviceGetPCIBusId(text, len(text), number) == 0:
            found.append(text.value)
    return found
