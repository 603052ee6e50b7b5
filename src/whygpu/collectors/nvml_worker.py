"""Queries NVML about the driver and every GPU, and prints one JSON object; run as a subprocess.

NVML can hang inside the kernel, where no signal reaches it. Therefore the caller waits for this
process and not for NVML. A fact is {"value": ...} or {"error": NVML's code, "text": its message}.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

NO_BINDINGS = -1
"""Error code in addition to NVML's own: this Python lacks nvidia-ml-py."""
NO_PERMISSION = 4
LIBRARY_NOT_FOUND = 12
WINDOWS_LIBRARY = "nvml.dll"
FUNCTION_NOT_FOUND = 13
UNREADABLE = 999

MOST_PAIRED = 32
"""GPUs that are compared in pairs; no machine has more."""
MOST_LINKS = 36
"""NVLinks of one GPU; the largest has 18."""

READ_ACCESS = 0
"""NVML_P2P_CAPS_INDEX_READ, which is a tuple in the bindings by mistake."""

Fact = dict[str, Any]


def main() -> None:
    # On a separate line, because a toolkit's stub of the library writes warnings to stdout.
    print("\n" + json.dumps(survey()))


def survey() -> dict[str, Any]:
    try:
        import pynvml
    except ImportError as error:
        return {"error": NO_BINDINGS, "text": str(error)}
    try:
        # pynvml only says that it found no library; the loader's message says why.
        if sys.platform == "win32":
            _find_on_windows()
        else:
            ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        return {"error": LIBRARY_NOT_FOUND, "text": str(error)}
    return Nvml(pynvml).survey()


def _find_on_windows() -> None:
    """Raise OSError if NVML is in neither of the folders in which drivers have installed it."""
    import os

    folders = (
        os.path.join(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32"),
        os.path.join(os.environ.get("PROGRAMFILES", ""), "NVIDIA Corporation", "NVSMI"),
    )
    if not any(os.path.exists(os.path.join(folder, WINDOWS_LIBRARY)) for folder in folders):
        raise OSError(f"{WINDOWS_LIBRARY}: No such file or directory in {' or '.join(folders)}")


class Nvml:
    """NVML through its bindings, with each error as a value."""

    def __init__(self, bindings: Any) -> None:
        self._nvml = bindings

    def survey(self) -> dict[str, Any]:
        started = self.fact("nvmlInit")
        if "error" in started:
            return started
        count = self.fact("nvmlDeviceGetCount")
        surveyed = {index: self.gpu(index) for index in range(count.get("value", 0))}
        gpus = permitted(surveyed)
        return {
            "driver": self.fact("nvmlSystemGetDriverVersion"),
            "cuda": self.fact("nvmlSystemGetCudaDriverVersion"),
            "count": count,
            "gpus": list(gpus.values()),
            "pairs": self.attempt(lambda: self.pairs(list(gpus)[:MOST_PAIRED])),
        }

    def fact(self, function: str, *arguments: Any) -> Fact:
        return self.attempt(lambda: plain(getattr(self._nvml, function)(*arguments)))

    def attempt(self, question: Callable[[], Any]) -> Fact:
        try:
            return {"value": question()}
        except self._nvml.NVMLError as error:
            return {"error": error.value, "text": str(error)}
        except AttributeError as error:
            # Bindings older than the function.
            return {"error": FUNCTION_NOT_FOUND, "text": str(error)}
        except (TypeError, ValueError, ctypes.ArgumentError) as error:
            # Bindings with another signature or a mistake of their own, or an answer that they
            # cannot read (a name in Latin-1).
            return {"error": UNREADABLE, "text": f"{type(error).__name__}: {error}"}

    def gpu(self, index: int) -> dict[str, Any]:
        try:
            handle = self._nvml.nvmlDeviceGetHandleByIndex(index)
        except self._nvml.NVMLError as error:
            return {"error": error.value, "text": str(error)}
        nvml = self._nvml
        return {
            "uuid": self.fact("nvmlDeviceGetUUID", handle),
            "name": self.fact("nvmlDeviceGetName", handle),
            "address": self.attempt(lambda: plain(nvml.nvmlDeviceGetPciInfo(handle).busId)),
            "capability": self.fact("nvmlDeviceGetCudaComputeCapability", handle),
            "memory_total": self.attempt(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).total),
            "memory_used": self.memory_used(handle),
            "memory_reserved": self.attempt(
                lambda: nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).reserved
            ),
            "compute_mode": self.fact("nvmlDeviceGetComputeMode", handle),
            "mig": self.attempt(lambda: nvml.nvmlDeviceGetMigMode(handle)[0]),
            "mig_uuids": self.attempt(lambda: self.mig_uuids(handle)),
            "ecc_uncorrected": self.attempt(
                lambda: nvml.nvmlDeviceGetTotalEccErrors(
                    handle, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
                )
            ),
            "processes": self.attempt(lambda: self.processes(handle)),
            "health": self.health(handle),
        }

    def health(self, handle: Any) -> dict[str, Fact]:
        """Settings and state of the hardware: what a fleet compares, and what wears out."""
        nvml = self._nvml
        return {
            "vbios": self.fact("nvmlDeviceGetVbiosVersion", handle),
            "ecc": self.attempt(lambda: nvml.nvmlDeviceGetEccMode(handle)[0]),
            "persistence": self.fact("nvmlDeviceGetPersistenceMode", handle),
            "power_limit": self.fact("nvmlDeviceGetPowerManagementLimit", handle),
            "power_default": self.fact("nvmlDeviceGetPowerManagementDefaultLimit", handle),
            "max_clock": self.attempt(
                lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)
            ),
            "max_memory_clock": self.attempt(
                lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM)
            ),
            "slowdowns": self.fact("nvmlDeviceGetCurrentClocksThrottleReasons", handle),
            "pcie": self.attempt(
                lambda: [
                    nvml.nvmlDeviceGetCurrPcieLinkWidth(handle),
                    nvml.nvmlDeviceGetMaxPcieLinkWidth(handle),
                    nvml.nvmlDeviceGetCurrPcieLinkGeneration(handle),
                    nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle),
                ]
            ),
            "rows": self.attempt(lambda: list(nvml.nvmlDeviceGetRemappedRows(handle))),
            "pages_pending": self.fact("nvmlDeviceGetRetiredPagesPendingStatus", handle),
            "nvlinks": self.attempt(lambda: self.links(handle)),
            "mig_layout": self.attempt(lambda: self.mig_names(handle)),
            "fabric": self.attempt(lambda: self.fabric(handle)),
        }

    def fabric(self, handle: Any) -> list[int]:
        """The state of joining the NVSwitches, and the error with which that ended."""
        info = self._nvml.c_nvmlGpuFabricInfoV_t()
        self._nvml.nvmlDeviceGetGpuFabricInfoV(handle, ctypes.byref(info))
        return [info.state, info.status]

    def links(self, handle: Any) -> list[bool]:
        """Whether each link is active. NVML shows how many there are by refusing the next one."""
        nvml = self._nvml
        active: list[bool] = []
        for link in range(MOST_LINKS):
            try:
                state = nvml.nvmlDeviceGetNvLinkState(handle, link)
            except (nvml.NVMLError_InvalidArgument, nvml.NVMLError_NotSupported):
                if link == 0:
                    raise
                break
            active.append(state == nvml.NVML_FEATURE_ENABLED)
        return active

    def pairs(self, numbers: list[int]) -> list[dict[str, Any]]:
        """How each two GPUs reach each other."""
        handles = [self._nvml.nvmlDeviceGetHandleByIndex(number) for number in numbers]
        return [
            {
                "first": first,
                "second": second,
                "path": self.fact("nvmlDeviceGetTopologyCommonAncestor", one, other),
                "peer_access": self.fact("nvmlDeviceGetP2PStatus", one, other, READ_ACCESS),
                "nvlinks": self.attempt(partial(self.links_between, one, other)),
            }
            for first, one in enumerate(handles)
            for second, other in enumerate(handles[first + 1 :], first + 1)
        ]

    def links_between(self, one: Any, other: Any) -> int:
        nvml = self._nvml
        address = nvml.nvmlDeviceGetPciInfo(other).busId
        return sum(
            nvml.nvmlDeviceGetNvLinkRemotePciInfo(one, link).busId == address
            for link, active in enumerate(self.links(one))
            if active
        )

    def memory_used(self, handle: Any) -> Fact:
        """As nvidia-smi counts it. The first version of this query includes reserved memory."""
        nvml = self._nvml
        fact = self.attempt(
            lambda: nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2).used
        )
        if fact.get("error") == FUNCTION_NOT_FOUND:
            return self.attempt(lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used)
        return fact

    def mig_uuids(self, handle: Any) -> list[str]:
        uuid = self._nvml.nvmlDeviceGetUUID
        return [plain(uuid(instance)) for instance in self.mig_instances(handle)]

    def mig_names(self, handle: Any) -> list[str]:
        name = self._nvml.nvmlDeviceGetName
        return [plain(name(instance)) for instance in self.mig_instances(handle)]

    def mig_instances(self, handle: Any) -> list[Any]:
        nvml = self._nvml
        instances = []
        for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
            try:
                instances.append(nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index))
            except nvml.NVMLError_NotFound:
                continue
        return instances

    def processes(self, handle: Any) -> list[dict[str, Any]]:
        """Processes that compute or draw on the GPU, each once."""
        found: dict[int, Any] = {}
        for process in self.running("Graphics", handle) + self.running("Compute", handle):
            found[process.pid] = process.usedGpuMemory
        return [
            {"pid": pid, "memory": memory, "name": self.fact("nvmlSystemGetProcessName", pid)}
            for pid, memory in sorted(found.items())
        ]

    def running(self, kind: str, handle: Any) -> list[Any]:
        """Old drivers know only old versions of this query."""
        versions = ("_v3", "_v2", "")
        for version in versions:
            function = getattr(self._nvml, f"nvmlDeviceGet{kind}RunningProcesses{version}", None)
            if function is None:
                continue
            try:
                return list(function(handle))
            except self._nvml.NVMLError_FunctionNotFound:
                continue
            except self._nvml.NVMLError_NotSupported:
                if kind == "Compute":
                    raise
                return []
        raise self._nvml.NVMLError(FUNCTION_NOT_FOUND)


def permitted(surveyed: dict[int, dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Without the GPUs that this process may not open, which NVML counts and CUDA does not see.

    A scheduler withholds the GPUs of other jobs. If no GPU may be opened, that is the answer.
    """
    allowed = {index: gpu for index, gpu in surveyed.items() if gpu.get("error") != NO_PERMISSION}
    return allowed or surveyed


def plain(value: Any) -> Any:
    """Text as str: old bindings return bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
