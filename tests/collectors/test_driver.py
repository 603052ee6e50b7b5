"""The driver in every state it can be in: each is another observation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.collectors.nvml_answers import (
    ASK,
    GIB,
    LOST,
    NOT_SUPPORTED,
    gpu,
    health,
    refusal,
    survey,
    value,
)
from tests.collectors.transcripts import HUNG, file, folder, host, node, printed
from whygpu.collectors import driver, gpu_processes, nvidia_smi
from whygpu.collectors.driver_answer import GpuIds
from whygpu.collectors.gpu_health import gpu_health
from whygpu.collectors.nvml_worker import Nvml
from whygpu.host.local import LocalHost
from whygpu.host.replay import ReplayHost
from whygpu.model.driver import Driver, DriverLibrary, Gpu, PcieLink, RowRepairs
from whygpu.model.observed import Absent, Known, Unknown

VERSION = "580.65.06"
FOLDER = "/usr/lib/x86_64-linux-gnu"

LIBRARIES = {
    f"stat {FOLDER}/lib{name}.so.1": file(f"{FOLDER}/lib{name}.so.{VERSION}")
    for name in ("cuda", "nvidia-ml")
}
MODULE = {
    "read /proc/driver/nvidia/version": (
        f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {VERSION}  Sun Jul 27 06:57:32 UTC 2025\n"
        "GCC version:  gcc version 12.3.0\n"
    ),
    "stat /sys/module/nvidia_uvm": folder("/sys/module/nvidia_uvm"),
}
NODES = {
    "list /dev": ("null", "nvidia-uvm", "nvidia0", "nvidiactl", "sda"),
    **{
        f"stat /dev/{name}": node(f"/dev/{name}") for name in ("nvidia-uvm", "nvidia0", "nvidiactl")
    },
}
EMPTY_DEV = {"list /dev": ("null", "sda")}
HEALTHY = {**LIBRARIES, **MODULE, **NODES}

SMI = f"run {' '.join(nvidia_smi.command())}"
NOT_FOUND = "libnvidia-ml.so.1: cannot open shared object file: No such file or directory"


def collect(machine: ReplayHost) -> Driver:
    facts, _ = driver.collect(machine)
    machine.assert_consumed()
    return facts


def state_of(facts: Driver) -> str:
    assert isinstance(facts.state, Known)
    return facts.state.value


def gpus_of(facts: Driver) -> tuple[Gpu, ...]:
    assert isinstance(facts.gpus, Known)
    return facts.gpus.value


def test_a_working_driver() -> None:
    facts = collect(host({**HEALTHY, ASK: survey(gpu())}))
    assert state_of(facts) == "working"
    assert facts.detail == ""
    assert facts.version == Known(VERSION, "NVML")
    assert facts.cuda == Known("13.0", "NVML")
    assert facts.kernel_module == Known(VERSION, "/proc/driver/nvidia/version")
    assert facts.uvm == Known(True, "/sys/module/nvidia_uvm")
    assert facts.cuda_library == Known(
        DriverLibrary(
            f"{FOLDER}/libcuda.so.1", Known(VERSION, f"{FOLDER}/libcuda.so.{VERSION}"), "driver"
        ),
        f"{FOLDER}/libcuda.so.1",
    )
    assert isinstance(facts.device_nodes, Known)
    assert [item.path for item in facts.device_nodes.value] == [
        "/dev/nvidia-uvm",
        "/dev/nvidia0",
        "/dev/nvidiactl",
    ]
    assert gpus_of(facts) == (
        Gpu(
            number=0,
            name="NVIDIA A100-SXM4-40GB",
            pci_address="0000:41:00.0",
            compute_capability=Known("8.0", "NVML"),
            memory_total_bytes=Known(40 * GIB, "NVML"),
            memory_used_bytes=Known(GIB, "NVML"),
            compute_mode=Known("default", "NVML"),
            mig=Known(False, "NVML"),
            ecc_uncorrected=Known(0, "NVML"),
            processes=Known((), "NVML"),
            memory_reserved_bytes=Known(GIB // 2, "NVML"),
            health=Known(gpu_health(health()), "NVML"),
        ),
    )


def test_the_state_of_the_hardware() -> None:
    found = gpu_health(
        health(slowdowns=value(0x40 | 0x08 | 0x01), rows=value([2, 1, 1, 0]), vbios=NOT_SUPPORTED)
    )
    assert found.slowdowns == Known(("thermal", "hardware"), "NVML")
    assert found.rows == Known(RowRepairs(2, 1, True, False), "NVML")
    assert found.pcie == Known(PcieLink(16, 16, 1, 4), "NVML")
    assert (found.power_limit_watts, found.nvlinks) == (Known(400, "NVML"), Known(12, "NVML"))
    assert found.vbios == Absent("NVML: Not Supported")


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ([1, 0], "not-started"),
        ([2, 0], "in-progress"),
        ([3, 0], "joined"),
        ([3, 999], "failed"),
    ],
)
def test_the_fabric_of_a_gpu_with_nvswitch(answer: list[int], state: str) -> None:
    assert gpu_health(health(fabric=value(answer))).fabric == Known(state, "NVML")


def test_a_gpu_without_nvswitch_has_no_fabric_and_a_new_state_is_unknown() -> None:
    assert isinstance(gpu_health(health(fabric=value([0, 0]))).fabric, Absent)
    assert isinstance(gpu_health(health(fabric=NOT_SUPPORTED)).fabric, Absent)
    assert isinstance(gpu_health(health(fabric=value([7, 0]))).fabric, Unknown)


def test_the_worker_reads_the_fabric_through_the_bindings() -> None:
    """With the real structure of the bindings; only the driver's function is ours."""
    import pynvml

    class Bindings:
        NVMLError = pynvml.NVMLError
        c_nvmlGpuFabricInfoV_t = pynvml.c_nvmlGpuFabricInfoV_t  # noqa: N815

        def nvmlDeviceGetGpuFabricInfoV(self, handle: Any, info: Any) -> int:  # noqa: N802
            info._obj.state, info._obj.status = 2, 0
            return 0

    assert Nvml(Bindings()).fabric(None) == [2, 0]


def test_what_an_old_driver_does_not_report_is_absent_and_an_error_is_unknown() -> None:
    found = gpu_health(
        health(
            rows={"error": 13, "text": "Function Not Found"},
            ecc={"error": 999, "text": "Unknown Error"},
        )
    )
    assert isinstance(found.rows, Absent)
    assert found.ecc == Unknown("NVML: Unknown Error")


def test_a_gpu_that_is_lost_during_the_last_queries_is_lost() -> None:
    facts = collect(host({**HEALTHY, ASK: survey(gpu(0, health=health(nvlinks=LOST)))}))
    assert state_of(facts) == "lost"


def test_no_driver_at_all_is_found_out_without_asking_anyone() -> None:
    # The transcript has no answer to running the worker: asking would be an error.
    facts = collect(host(EMPTY_DEV))
    assert state_of(facts) == "missing"
    assert isinstance(facts.kernel_module, Absent)
    assert isinstance(facts.cuda_library, Absent)
    assert isinstance(facts.gpus, Absent)
    assert isinstance(facts.uvm, Absent)


def test_library_without_a_kernel_module() -> None:
    answers = {**LIBRARIES, **EMPTY_DEV, ASK: refusal(9, "Driver Not Loaded")}
    facts = collect(host(answers))
    assert state_of(facts) == "not-loaded"
    assert facts.detail == "Driver Not Loaded"
    assert isinstance(facts.kernel_module, Absent)
    assert isinstance(facts.gpus, Unknown)
    assert isinstance(facts.version, Unknown)


def test_kernel_module_without_the_library() -> None:
    """A container into which the host passed nothing."""
    answers = {**MODULE, **EMPTY_DEV, ASK: refusal(12, NOT_FOUND), SMI: Absent("nvidia-smi")}
    facts = collect(host(answers))
    assert state_of(facts) == "missing"
    assert facts.detail == NOT_FOUND
    assert isinstance(facts.nvml_library, Absent)
    assert facts.kernel_module == Known(VERSION, "/proc/driver/nvidia/version")
    assert isinstance(facts.gpus, Unknown)


def test_a_library_that_cannot_be_loaded_is_not_a_missing_one() -> None:
    answers = {**HEALTHY, ASK: refusal(12, f"{FOLDER}/libnvidia-ml.so.1: file too short")}
    assert state_of(collect(host(answers))) == "failed"


def test_library_and_module_of_different_versions() -> None:
    text = "Driver/library version mismatch"
    old = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 2024\n"
    answers = {**HEALTHY, "read /proc/driver/nvidia/version": old, ASK: refusal(18, text)}
    facts = collect(host(answers))
    assert state_of(facts) == "mismatched"
    assert facts.detail == text
    assert facts.version == Unknown("library 580.65.06 and kernel module 550.54.14 differ")


def test_permission_denied() -> None:
    facts = collect(host({**HEALTHY, ASK: refusal(4, "Insufficient Permissions")}))
    assert state_of(facts) == "denied"
    assert facts.version == Known(VERSION, "/proc/driver/nvidia/version")


def test_a_closed_device_node_makes_not_loaded_a_matter_of_permission() -> None:
    closed = node("/dev/nvidiactl", usable=False, mode="crw-rw----", group="video")
    answers = {**HEALTHY, "stat /dev/nvidiactl": closed, ASK: refusal(9, "Driver Not Loaded")}
    facts = collect(host(answers))
    assert state_of(facts) == "denied"
    assert facts.detail == "Driver Not Loaded: /dev/nvidiactl is crw-rw----, group video"


def test_missing_device_nodes_make_not_loaded_another_failure() -> None:
    answers = {**LIBRARIES, **MODULE, **EMPTY_DEV, ASK: refusal(9, "Driver Not Loaded")}
    facts = collect(host(answers))
    assert state_of(facts) == "failed"
    assert "580.65.06 is loaded, but its device nodes are not here" in facts.detail


def test_a_driver_that_hangs() -> None:
    facts = collect(host({**HEALTHY, ASK: HUNG}))
    assert state_of(facts) == "hung"
    assert facts.detail == "NVML did not answer within 10 seconds"
    assert isinstance(facts.gpus, Unknown)
    assert facts.version == Known(VERSION, "/proc/driver/nvidia/version")


def test_the_time_limit_is_the_callers() -> None:
    facts, _ = driver.collect(host({**HEALTHY, ASK: HUNG}), timeout=2.5)
    assert facts.detail == "NVML did not answer within 2.5 seconds"


def test_a_crash_in_nvml_is_an_observation() -> None:
    facts = collect(host({**HEALTHY, ASK: printed(code=-11)}))
    assert state_of(facts) == "failed"
    assert facts.detail == "NVML crashed (SIGSEGV)"


def test_any_other_error_is_a_failure_in_the_drivers_words() -> None:
    facts = collect(host({**HEALTHY, ASK: refusal(999, "Unknown Error")}))
    assert (state_of(facts), facts.detail) == ("failed", "Unknown Error")


@pytest.mark.parametrize("lost", [0, 1])
def test_one_lost_gpu_does_not_hide_the_other(lost: int) -> None:
    gpus = [gpu(0), gpu(1)]
    gpus[lost] = LOST
    proc = "/proc/driver/nvidia/gpus"
    addresses = ("0000:41:00.0", "0000:42:00.0")
    answers = {
        **HEALTHY,
        ASK: survey(*gpus),
        f"list {proc}": addresses,
        f"read {proc}/{addresses[lost]}/information": "Model: \t\t NVIDIA A40\nIRQ:   \t\t 12\n",
    }
    machine = host(answers)
    facts, ids = driver.collect(machine)
    machine.assert_consumed()
    assert state_of(facts) == "lost"
    assert facts.detail == f"GPU {lost}: GPU is lost"
    silent, other = gpus_of(facts)[lost], gpus_of(facts)[1 - lost]
    assert (silent.name, silent.pci_address) == ("NVIDIA A40", addresses[lost])
    assert silent.memory_total_bytes == Unknown("NVML: GPU is lost")
    assert other.memory_total_bytes == Known(40 * GIB, "NVML")
    assert [bool(each.uuid) for each in ids] == [lost == 1, lost == 0]


def test_a_gpu_lost_while_it_is_asked() -> None:
    facts = collect(host({**HEALTHY, ASK: survey(gpu(0), gpu(1, memory_used=LOST))}))
    assert state_of(facts) == "lost"
    assert gpus_of(facts)[1].memory_used_bytes == Unknown("NVML: GPU is lost")


def test_a_gpu_that_is_refused_leaves_the_driver_working_for_the_other() -> None:
    refused = {"error": 4, "text": "Insufficient Permissions"}
    facts = collect(host({**HEALTHY, ASK: survey(gpu(0), refused)}))
    assert state_of(facts) == "working"
    assert facts.detail == "GPU 1: Insufficient Permissions"


def test_when_every_gpu_is_refused_the_driver_is() -> None:
    refused = {"error": 4, "text": "Insufficient Permissions"}
    assert state_of(collect(host({**HEALTHY, ASK: survey(refused, refused)}))) == "denied"


def test_a_driver_without_gpus() -> None:
    facts = collect(host({**HEALTHY, ASK: survey()}))
    assert state_of(facts) == "working"
    assert gpus_of(facts) == ()
    assert facts.version == Known(VERSION, "NVML")


def test_gpus_that_differ() -> None:
    old = gpu(1, "Tesla K80", capability=value([3, 7]), mig=NOT_SUPPORTED, ecc_uncorrected=value(3))
    first, second = gpus_of(collect(host({**HEALTHY, ASK: survey(gpu(0), old)})))
    assert (first.name, first.compute_capability) == (
        "NVIDIA A100-SXM4-40GB",
        Known("8.0", "NVML"),
    )
    assert (second.name, second.compute_capability) == ("Tesla K80", Known("3.7", "NVML"))
    assert second.mig == Known(False, "NVML: this GPU has no MIG")
    assert second.ecc_uncorrected == Known(3, "NVML")


def test_what_a_gpu_does_not_have_and_what_it_does_not_tell() -> None:
    modest = gpu(ecc_uncorrected=NOT_SUPPORTED, memory_total=NOT_SUPPORTED, compute_mode=value(7))
    (found,) = gpus_of(collect(host({**HEALTHY, ASK: survey(modest)})))
    assert isinstance(found.ecc_uncorrected, Absent)
    assert found.memory_total_bytes == Unknown("NVML: Not Supported")
    assert isinstance(found.compute_mode, Unknown)


def test_a_split_gpu_keeps_its_instances_out_of_the_snapshot() -> None:
    instances = ["MIG-11111111-d72c-4106-c12f-20bd9faed9f6"]
    split = gpu(mig=value(1), mig_uuids=value(instances), compute_mode=value(3))
    facts, ids = driver.collect(host({**HEALTHY, ASK: survey(split)}))
    (found,) = gpus_of(facts)
    assert found.mig == Known(True, "NVML")
    assert found.compute_mode == Known("exclusive", "NVML")
    assert ids == (GpuIds("GPU-00000000-d72c-4106-c12f-20bd9faed9f6", tuple(instances)),)
    assert "d72c" not in repr(facts)


def test_processes_are_told_without_their_arguments() -> None:
    rows = [
        {"pid": 7, "memory": GIB, "name": value("/home/me/bin/python train.py --token=hunter2")},
        {"pid": 8, "memory": None, "name": {"error": 6, "text": "Not Found"}},
    ]
    proc = f"run {' '.join(gpu_processes.command(host(), (7, 8)))}"
    answers = {**HEALTHY, ASK: survey(gpu(processes=value(rows))), proc: printed()}
    (found,) = gpus_of(collect(host(answers)))
    assert isinstance(found.processes, Known)
    assert [tuple(process)[:3] for process in found.processes.value] == [
        (7, Known("python", "NVML"), Known(GIB, "NVML")),
        (
            8,
            Unknown("NVML: Not Found"),
            Unknown("NVML does not report memory per process here"),
        ),
    ]


def test_a_stubs_warning_on_stdout_does_not_hide_the_answer() -> None:
    answer = refusal(999, "Unknown Error")
    noisy = printed("WARNING:\nYou should always run with ...\n" + answer.stdout)
    assert state_of(collect(host({**HEALTHY, ASK: noisy}))) == "failed"


def test_what_start_up_files_print_is_not_taken_for_the_answer() -> None:
    noisy = printed("{'a': 1}\n{}\n" + survey(gpu()).stdout + '{"bye": 1}\n')
    assert state_of(collect(host({**HEALTHY, ASK: noisy}))) == "working"


def test_a_name_that_the_bindings_cannot_read_costs_that_name_alone() -> None:
    class Bindings:
        NVMLError = OSError

        def nvmlSystemGetProcessName(self, pid: int) -> str:  # noqa: N802
            return b"\xff".decode()

    told = Nvml(Bindings()).fact("nvmlSystemGetProcessName", 1)
    assert "UnicodeDecodeError" in told["text"]


def test_wsl_has_no_kernel_module_and_misses_none() -> None:
    wsl = "/usr/lib/wsl/lib"
    answers: dict[str, Any] = {
        "list /dev": ("dxg", "null"),
        "stat /dev/dxg": node("/dev/dxg"),
        **{
            f"stat {wsl}/lib{name}.so.1": file(f"{wsl}/lib{name}.so.1", 1 << 18)
            for name in ("cuda", "nvidia-ml")
        },
        ASK: survey(gpu()),
    }
    facts = collect(host(answers, {"LD_LIBRARY_PATH": wsl}, kernel="5.15-microsoft-standard-WSL2"))
    assert state_of(facts) == "working"
    assert isinstance(facts.kernel_module, Absent)
    assert facts.kernel_module.source.startswith("WSL")
    assert isinstance(facts.cuda_library, Known)
    assert facts.cuda_library.value.kind == "wsl"
    assert isinstance(facts.cuda_library.value.version, Absent)


ON_WINDOWS = {
    rf"stat C:\Windows\System32\{name}": file(rf"C:\Windows\System32\{name}")
    for name in ("nvcuda.dll", "nvml.dll")
}


def test_windows_has_no_kernel_module_and_misses_none() -> None:
    answers = {**ON_WINDOWS, ASK: survey(gpu())}
    seen, _ = driver.collect(host(answers, {"SYSTEMROOT": r"C:\Windows"}, system="Windows"))
    assert seen.state == Known("working", "NVML")
    assert isinstance(seen.gpus, Known)
    assert isinstance(seen.kernel_module, Absent)
    assert isinstance(seen.device_nodes, Absent)
    assert isinstance(seen.uvm, Absent)
    assert isinstance(seen.cuda_library, Known)
    assert seen.cuda_library.value.kind == "driver"


def test_windows_without_a_driver() -> None:
    text = r"nvml.dll: No such file or directory in C:\Windows\System32"
    seen, _ = driver.collect(
        host({ASK: refusal(12, text), SMI: Absent("nvidia-smi")}, system="Windows")
    )
    assert seen.state == Known("missing", "NVML")
    assert isinstance(seen.cuda_library, Absent)


def test_a_sandbox_that_hides_the_module_of_a_working_driver() -> None:
    facts = collect(host({**LIBRARIES, **NODES, ASK: survey(gpu())}))
    assert state_of(facts) == "working"
    assert isinstance(facts.kernel_module, Unknown)


def test_this_machine() -> None:
    facts, ids = driver.collect(LocalHost())
    state = state_of(facts)
    if state == "working":
        assert len(ids) == len(gpus_of(facts))
        assert [found.number for found in gpus_of(facts)] == list(range(len(ids)))
    if isinstance(facts.nvml_library, Absent) and isinstance(facts.device_nodes, Absent):
        assert state == "missing"


NO_BINDINGS = refusal(-1, "No module named 'pynvml'")
ROW = f"{VERSION}, GPU-1, NVIDIA H200, 00000000:00:06.0, 143771, 5, Default, Disabled, 0, 9.0\n"


def test_without_bindings_nvidia_smi_answers() -> None:
    facts = collect(host({**HEALTHY, ASK: NO_BINDINGS, SMI: printed(ROW)}))
    assert facts.state == Known("working", nvidia_smi.SOURCE)
    assert [found.name for found in gpus_of(facts)] == ["NVIDIA H200"]


def test_with_nobody_to_ask_the_state_is_unknown() -> None:
    facts = collect(host({**HEALTHY, ASK: NO_BINDINGS, SMI: Absent("nvidia-smi")}))
    assert facts.state == Unknown("NVML could not be queried: No module named 'pynvml'")
    assert isinstance(facts.gpus, Unknown)
    assert facts.version == Known(VERSION, "/proc/driver/nvidia/version")


def test_nvidia_smi_finds_a_library_that_the_loader_does_not() -> None:
    answers = {**MODULE, **NODES, ASK: refusal(12, NOT_FOUND), SMI: printed(ROW)}
    facts = collect(host(answers))
    assert facts.state == Known("working", nvidia_smi.SOURCE)
    assert isinstance(facts.nvml_library, Absent)


def test_a_failing_nvidia_smi_does_not_overrule_nvml() -> None:
    failing = printed("NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.\n", code=12)
    answers = {**MODULE, **NODES, ASK: refusal(12, NOT_FOUND), SMI: failing}
    facts = collect(host(answers))
    assert facts.state == Known("missing", "NVML")
    assert facts.detail == NOT_FOUND
