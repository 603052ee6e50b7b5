"""The stub driver is taken for a real one by pynvml, and by callers of libcuda."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.lab.driver import StubDriver, StubGpu, StubProcess, build
from tests.patience import PATIENCE, stopped_in_time

T4 = StubGpu(
    name="Tesla T4",
    compute_capability="7.5",
    memory_total_mib=15360,
    memory_used_mib=600,
    mig="unsupported",
)
GEFORCE = StubGpu(
    name="NVIDIA GeForce RTX 4090", compute_capability="8.9", ecc="unsupported", mig="unsupported"
)

Ask = Callable[..., Any]


@pytest.fixture
def ask(tmp_path: Path, built_driver: Path) -> Ask:
    """Run code beside a driver and return what it assigns to ``answer``."""

    def run(driver: StubDriver, code: str, timeout: float = PATIENCE, **extra: str | None) -> Any:
        wanted = {**os.environ, "CUDA_VISIBLE_DEVICES": None}
        wanted |= driver.install(tmp_path / "driver", cache=built_driver) | extra
        environment = {name: value for name, value in wanted.items() if value is not None}
        done = subprocess.run(
            [sys.executable, "-c", f"{code}\nimport json; print(json.dumps(answer))"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


# --- NVML, through pynvml -------------------------------------------------------------------------

EVERYTHING = """
from pynvml import *

def tried(function, *arguments):
    try:
        return function(*arguments)
    except NVMLError as error:
        return type(error).__name__

def gpu(index):
    handle = nvmlDeviceGetHandleByIndex(index)
    pci, memory = nvmlDeviceGetPciInfo(handle), nvmlDeviceGetMemoryInfo(handle)
    second = nvmlDeviceGetMemoryInfo(handle, version=nvmlMemory_v2)
    assert (second.total, second.used) == (memory.total, memory.used)
    assert nvmlDeviceGetIndex(nvmlDeviceGetHandleByUUID(nvmlDeviceGetUUID(handle))) == index
    assert nvmlDeviceGetIndex(nvmlDeviceGetHandleByPciBusId(pci.busId)) == index
    return {
        "name": nvmlDeviceGetName(handle),
        "uuid": nvmlDeviceGetUUID(handle),
        "pci": [pci.busId, pci.busIdLegacy, pci.bus],
        "capability": nvmlDeviceGetCudaComputeCapability(handle),
        "architecture": nvmlDeviceGetArchitecture(handle),
        "mib": [memory.total >> 20, memory.used >> 20, memory.free >> 20],
        "compute_mode": nvmlDeviceGetComputeMode(handle),
        "persistence": nvmlDeviceGetPersistenceMode(handle),
        "mig": tried(nvmlDeviceGetMigMode, handle),
        "ecc": tried(nvmlDeviceGetEccMode, handle),
        "ecc_errors": [tried(nvmlDeviceGetTotalEccErrors, handle, kind, 0) for kind in (0, 1)],
        "ecc_in_memory": [
            tried(nvmlDeviceGetMemoryErrorCounter, handle, kind, 0, 2) for kind in (0, 1)
        ],
        "driver_model": tried(nvmlDeviceGetDriverModel, handle),
        "utilisation": nvmlDeviceGetUtilizationRates(handle).gpu,
        "celsius": nvmlDeviceGetTemperature(handle, NVML_TEMPERATURE_GPU),
        "milliwatts": nvmlDeviceGetPowerUsage(handle),
    }

nvmlInit()
answer = {
    "driver": nvmlSystemGetDriverVersion(),
    "nvml": nvmlSystemGetNVMLVersion(),
    "cuda": [nvmlSystemGetCudaDriverVersion(), nvmlSystemGetCudaDriverVersion_v2()],
    "gpus": [gpu(index) for index in range(nvmlDeviceGetCount())],
    "one too far": tried(nvmlDeviceGetHandleByIndex, nvmlDeviceGetCount()),
}
nvmlShutdown()
answer["after"] = tried(nvmlDeviceGetCount)
"""

HEALTHY = {
    "driver": "580.65.06",
    "nvml": "13.580.65.06",
    "cuda": [13000, 13000],
    "gpus": [
        {
            "name": "NVIDIA A100-SXM4-40GB",
            "uuid": "GPU-57470000-7768-4179-8067-707500000000",
            "pci": ["00000000:01:00.0", "0000:01:00.0", 1],
            "capability": [8, 0],
            "architecture": 7,
            "mib": [40960, 4, 40956],
            "compute_mode": 0,
            "persistence": 1,
            "mig": [0, 0],
            "ecc": [1, 1],
            "ecc_errors": [0, 0],
            "ecc_in_memory": [0, 0],
            "driver_model": "NVMLError_NotSupported",
            "utilisation": 0,
            "celsius": 34,
            "milliwatts": 52000,
        }
    ],
    "one too far": "NVMLError_InvalidArgument",
    "after": "NVMLError_Uninitialized",
}


def test_a_healthy_driver_with_one_gpu(ask: Ask) -> None:
    assert ask(StubDriver(), EVERYTHING) == HEALTHY


def test_without_a_file_the_driver_is_the_default_one(ask: Ask) -> None:
    assert ask(StubDriver(gpus=()), EVERYTHING, WHYGPU_STUB_DRIVER=None) == HEALTHY


def test_two_gpus_that_differ(ask: Ask) -> None:
    worn = StubGpu(
        compute_mode="exclusive_process", mig="on", ecc_corrected=7, ecc_uncorrected=2, uuid="GPU-1"
    )
    answer = ask(StubDriver(version="535.54.03", cuda="12.2", gpus=(T4, worn)), EVERYTHING)
    assert (answer["driver"], answer["nvml"]) == ("535.54.03", "12.535.54.03")
    assert answer["cuda"] == [12020, 12020]
    first, second = answer["gpus"]
    assert (first["name"], first["capability"], first["architecture"]) == ("Tesla T4", [7, 5], 6)
    assert first["mib"] == [15360, 600, 14760]
    assert first["mig"] == "NVMLError_NotSupported"
    assert first["pci"][0] == "00000000:01:00.0"
    assert (second["uuid"], second["pci"][0]) == ("GPU-1", "00000000:02:00.0")
    assert (second["capability"], second["compute_mode"], second["mig"]) == ([8, 0], 3, [1, 1])
    assert second["ecc_errors"] == second["ecc_in_memory"] == [7, 2]


def test_a_gpu_without_ecc_has_no_counts_either(ask: Ask) -> None:
    [gpu] = ask(StubDriver(gpus=(GEFORCE,)), EVERYTHING)["gpus"]
    assert gpu["architecture"] == 8
    assert gpu["ecc"] == "NVMLError_NotSupported"
    assert gpu["ecc_errors"] == gpu["ecc_in_memory"] == ["NVMLError_NotSupported"] * 2


def test_a_driver_without_gpus(ask: Ask) -> None:
    assert ask(StubDriver(gpus=()), EVERYTHING)["gpus"] == []


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (4, "NVMLError_NoPermission", "Insufficient Permissions"),
        (9, "NVMLError_DriverNotLoaded", "Driver Not Loaded"),
        (12, "NVMLError_LibraryNotFound", "NVML Shared Library Not Found"),
        (15, "NVMLError_GpuIsLost", "GPU is lost"),
        (18, "NVMLError_LibRmVersionMismatch", "Driver/library version mismatch"),
        (999, "NVMLError_Unknown", "Unknown Error"),
    ],
)
def test_nvml_fails_to_start(ask: Ask, code: int, error: str, text: str) -> None:
    attempt = """
from pynvml import *
try:
    nvmlInit()
except NVMLError as error:
    answer = [type(error).__name__, nvmlErrorString(error.value)]
"""
    assert ask(StubDriver(nvml_init=code), attempt) == [error, text]


def test_a_lost_gpu_does_not_hide_the_other(ask: Ask) -> None:
    attempt = """
from pynvml import *
nvmlInit()
answer = [nvmlDeviceGetCount()]
for index in range(2):
    try:
        answer.append(nvmlDeviceGetName(nvmlDeviceGetHandleByIndex(index)))
    except NVMLError as error:
        answer.append(type(error).__name__)
"""
    driver = StubDriver(gpus=(StubGpu(lost=True), T4))
    assert ask(driver, attempt) == [2, "NVMLError_GpuIsLost", "Tesla T4"]


def test_a_single_call_about_a_single_gpu_fails(ask: Ask) -> None:
    attempt = """
from pynvml import *
nvmlInit()
answer = []
for index in range(2):
    handle = nvmlDeviceGetHandleByIndex(index)
    try:
        answer.append(nvmlDeviceGetMemoryInfo(handle).total >> 20)
    except NVMLError as error:
        answer.append(type(error).__name__)
"""
    shared_memory = StubGpu(returns={"nvmlDeviceGetMemoryInfo": 3})
    driver = StubDriver(gpus=(T4, shared_memory))
    assert ask(driver, attempt) == [15360, "NVMLError_NotSupported"]


def test_processes_and_their_memory(ask: Ask) -> None:
    attempt = """
from pynvml import *
nvmlInit()
handle = nvmlDeviceGetHandleByIndex(0)

def rows(processes):
    return [[p.pid, nvmlSystemGetProcessName(p.pid), p.usedGpuMemory] for p in processes]

answer = {
    "compute": rows(nvmlDeviceGetComputeRunningProcesses(handle)),
    "compute, older call": rows(nvmlDeviceGetComputeRunningProcesses_v2(handle)),
    "graphics": rows(nvmlDeviceGetGraphicsRunningProcesses(handle)),
    "idle": rows(nvmlDeviceGetComputeRunningProcesses(nvmlDeviceGetHandleByIndex(1))),
}
try:
    nvmlSystemGetProcessName(99)
except NVMLError as error:
    answer["stranger"] = type(error).__name__
"""
    busy = StubGpu(
        memory_used_mib=9000,
        processes=(
            StubProcess(4242, "python", 8192),
            StubProcess(17, "/usr/lib/xorg/Xorg", 80, graphics=True),
            StubProcess(4343, "ray::Worker.train", None),
        ),
    )
    compute = [[4242, "python", 8192 << 20], [4343, "ray::Worker.train", None]]
    assert ask(StubDriver(gpus=(busy, T4)), attempt) == {
        "compute": compute,
        "compute, older call": compute,
        "graphics": [[17, "/usr/lib/xorg/Xorg", 80 << 20]],
        "idle": [],
        "stranger": "NVMLError_NotFound",
    }


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("nvmlInit", "import pynvml; print('here', flush=True); pynvml.nvmlInit()"),
        (
            "cuInit",
            "import ctypes; cuda = ctypes.CDLL('libcuda.so.1'); print('here', flush=True); "
            "cuda.cuInit(0)",
        ),
    ],
)
def test_a_call_that_hangs(ask: Ask, call: str, code: str) -> None:
    def hung(limit: float) -> bytes:
        with pytest.raises(subprocess.TimeoutExpired) as caught:
            ask(StubDriver(hang=call), code, timeout=limit)
        return caught.value.stdout or b""

    said, _ = stopped_in_time(hung, bool)
    assert said == b"here\n"


# --- libcuda, through ctypes ----------------------------------------------------------------------

DEVICES = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
count, text = ctypes.c_int(-1), ctypes.create_string_buffer(64)
before = cuda.cuDeviceGetCount(ctypes.byref(count))
answer = {"before": before, "cuInit": cuda.cuInit(0), "names": []}
answer["cuDeviceGetCount"] = cuda.cuDeviceGetCount(ctypes.byref(count))
for device in range(max(count.value, 0)):
    assert cuda.cuDeviceGetName(text, 64, device) == 0
    answer["names"].append(text.value.decode())
"""

PAIR = StubDriver(gpus=(T4, GEFORCE))
BOTH = ["Tesla T4", "NVIDIA GeForce RTX 4090"]


def test_libcuda_lists_gpus_after_cuinit_only(ask: Ask) -> None:
    assert ask(PAIR, DEVICES) == {"before": 3, "cuInit": 0, "cuDeviceGetCount": 0, "names": BOTH}


@pytest.mark.parametrize("code", [35, 100, 802, 803, 804, 999])
def test_cuinit_fails(ask: Ask, code: int) -> None:
    answer = ask(StubDriver(cu_init=code), DEVICES)
    assert (answer["cuInit"], answer["cuDeviceGetCount"], answer["names"]) == (code, 3, [])


def test_a_driver_without_gpus_has_no_device(ask: Ask) -> None:
    assert ask(StubDriver(gpus=()), DEVICES)["cuInit"] == 100


def test_counting_fails(ask: Ask) -> None:
    answer = ask(StubDriver(returns={"cuDeviceGetCount": 999}), DEVICES)
    assert (answer["cuInit"], answer["cuDeviceGetCount"], answer["names"]) == (0, 999, [])


@pytest.mark.parametrize(
    ("visible", "code", "names"),
    [
        ("", 100, []),
        ("0", 0, BOTH[:1]),
        ("1,0", 0, BOTH[::-1]),
        ("0,7,1", 0, BOTH[:1]),
        ("7,0", 100, []),
        ("-1", 100, []),
        ("1,-1,0", 0, BOTH[1:]),
        ("junk", 100, []),
        ("1junk", 0, BOTH[1:]),
        (",0", 100, []),
        (" 1 , 0 ", 0, BOTH[::-1]),
        ("0,0", 101, []),
        ("GPU-57470001", 0, BOTH[1:]),
        (PAIR.gpus[1].uuid.upper(), 0, BOTH[1:]),
        (f"{PAIR.gpus[1].uuid},GPU-57470000", 0, BOTH[::-1]),
        ("GPU-57470001,0", 0, BOTH[1:]),
        ("0,GPU-57470001", 0, BOTH[:1]),
        ("GPU-5747", 100, []),
        ("GPU-", 100, []),
        ("gpu-57470001", 100, []),
        ("GPU-ffff", 100, []),
    ],
)
def test_visible_devices(ask: Ask, visible: str, code: int, names: list[str]) -> None:
    answer = ask(PAIR, DEVICES, CUDA_VISIBLE_DEVICES=visible)
    assert (answer["cuInit"], answer["names"]) == (code, names)


def test_visible_devices_count_until_cuinit_succeeds(ask: Ask) -> None:
    attempt = """
import ctypes, os
cuda, count, answer = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), []
for visible in ("", "1", "0,1"):
    os.environ["CUDA_VISIBLE_DEVICES"] = visible
    answer.append([cuda.cuInit(0), cuda.cuDeviceGetCount(ctypes.byref(count)), count.value])
"""
    assert ask(PAIR, attempt) == [[100, 3, 0], [0, 0, 1], [0, 0, 1]]


def test_what_libcuda_says_of_a_gpu(ask: Ask) -> None:
    attempt = """
import ctypes
from ctypes import byref
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
version, size, text = ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(64)
assert cuda.cuDriverGetVersion(byref(version)) == 0
answer = {"version": version.value}
assert cuda.cuDeviceTotalMem_v2(byref(size), 0) == 0
answer["mib"] = size.value >> 20
assert cuda.cuDeviceGetPCIBusId(text, 64, 0) == 0
answer["pci"] = text.value.decode()
assert cuda.cuDeviceGetUuid_v2(text, 0) == 0
answer["uuid"] = text.raw[:16].hex()
answer["attributes"] = []
for attribute in (75, 76, 33, 20, 32, 10):
    assert cuda.cuDeviceGetAttribute(byref(version), attribute, 0) == 0
    answer["attributes"].append(version.value)
answer["no such device"] = cuda.cuDeviceGetAttribute(byref(version), 75, 1)
answer["allocation"] = cuda.cuMemAlloc_v2(byref(size), 1024)
error = ctypes.c_char_p()
answer["errors"] = []
for code in (803, 35):
    cuda.cuGetErrorName(code, byref(error))
    answer["errors"].append(error.value and error.value.decode())
"""
    gpu = StubGpu(
        compute_capability="12.0",
        pci_bus_id="0000:3B:00.0",
        compute_mode="prohibited",
        memory_total_mib=97887,
    )
    assert ask(StubDriver(cuda="12.8", gpus=(gpu,)), attempt) == {
        "version": 12080,
        "mib": 97887,
        "pci": "0000:3B:00.0",
        "uuid": "57470000776841798067707500000000",
        "attributes": [12, 0, 0x3B, 2, 1, 32],
        "no such device": 101,
        "allocation": 801,
        "errors": ["CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", None],
    }


def test_the_runtime_finds_calls_by_name_and_version(ask: Ask) -> None:
    attempt = """
import ctypes
from ctypes import byref
cuda = ctypes.CDLL("libcuda.so.1")
address, status = ctypes.c_void_p(), ctypes.c_int()

def look_up(name, version):
    none = ctypes.c_uint64(0)
    code = cuda.cuGetProcAddress_v2(name.encode(), byref(address), version, none, byref(status))
    for real in ("cuInit", "cuDeviceTotalMem", "cuDeviceTotalMem_v2", "cuLaunchKernel"):
        if address.value == ctypes.cast(getattr(cuda, real), ctypes.c_void_p).value:
            return [code, status.value, real]
    return [code, status.value, address.value]

answer = [
    look_up("cuInit", 2000),
    look_up("cuDeviceTotalMem", 3010),
    look_up("cuDeviceTotalMem", 12000),
    look_up("cuDeviceTotalMem", 1000),
    look_up("cuLaunchKernel", 13000),
    look_up("cuNoSuchCall", 12000),
    look_up("cuInit", 13010),
]
"""
    assert ask(StubDriver(), attempt) == [
        [0, 0, "cuInit"],
        [0, 0, "cuDeviceTotalMem"],
        [0, 0, "cuDeviceTotalMem_v2"],
        [0, 2, None],
        [0, 0, "cuLaunchKernel"],
        [0, 1, None],
        [1, 1, None],
    ]


# --- The files, and mistakes in a test ------------------------------------------------------------


def test_the_files_are_named_as_a_driver_names_them(tmp_path: Path, built_driver: Path) -> None:
    patch = StubDriver(version="535.54.03").install(tmp_path, cache=built_driver)
    assert patch["LD_LIBRARY_PATH"].split(":")[0] == str(tmp_path)
    for library in ("libcuda", "libnvidia-ml"):
        link = tmp_path / f"{library}.so.1"
        assert link.is_symlink()
        assert link.resolve().name == f"{library}.so.535.54.03"
        assert f"{library}.so.1\0".encode() in link.read_bytes()


def test_a_library_can_be_left_out(tmp_path: Path, built_driver: Path) -> None:
    StubDriver(libraries=("nvidia-ml",)).install(tmp_path, cache=built_driver)
    assert not list(tmp_path.glob("libcuda*"))


def test_it_is_compiled_once(built_driver: Path) -> None:
    [before] = {file.stat().st_mtime_ns for file in built_driver.iterdir()}
    build(built_driver)
    [after] = {file.stat().st_mtime_ns for file in built_driver.iterdir()}
    assert before == after


def test_a_misspelt_call_is_an_error() -> None:
    with pytest.raises(ValueError, match="nvmlInitt"):
        StubDriver(hang="nvmlInitt").configuration()


def test_a_file_that_does_not_parse_ends_the_program(tmp_path: Path, built_driver: Path) -> None:
    patch = StubDriver().install(tmp_path, cache=built_driver)
    (tmp_path / "stub-driver.conf").write_text("version = 1\n[gpu]\nmemory = 5\n")
    code = "import ctypes; ctypes.CDLL('libcuda.so.1').cuInit(0)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | patch, capture_output=True, check=False
    )
    assert done.returncode == 78
    assert b"stub-driver.conf:3: unknown key of a GPU: memory" in done.stderr
