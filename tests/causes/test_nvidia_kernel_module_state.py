"""Who holds the card, what nvidia_uvm needs, and systems that have no module of their own."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.kit import cause_named, command_of, machine, run

CAUSE = cause_named("nvidia-kernel-module-state")


def not_loaded(holder: str) -> str:
    return f"""
probes_left_out = "--no-probe"
[[graphics]]
vendor = "nvidia"
address = "0000:01:00.0"
device_id = "2684"
kernel_driver = {holder}
[driver]
state = "not-loaded"
kernel_module = {{absent = "/sys/module/nvidia"}}
uvm = false
device_nodes = {{absent = "/dev/nvidia*"}}
gpus = {{unknown = "NVML could not tell"}}
"""


@pytest.mark.parametrize(
    ("holder", "first_advice"),
    [
        ('"nouveau"', "nouveau"),
        ('"vfio-pci"', "virtual machine"),
        ('{absent = "driver"}', "Load it"),
    ],
)
def test_the_first_advice_depends_on_who_holds_the_card(holder: str, first_advice: str) -> None:
    (finding,) = run(CAUSE, machine(not_loaded(holder))).findings
    assert first_advice in finding.remedies[0].text


@each(
    ("code", "status"),
    [
        ("999 CUDA_ERROR_UNKNOWN", "found"),
        ("304 CUDA_ERROR_OPERATING_SYSTEM", "found"),
        ("0 CUDA_SUCCESS", "passed"),
        ("100 CUDA_ERROR_NO_DEVICE", "passed"),
        ("804 CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "passed"),
    ],
)
def test_a_missing_nvidia_uvm_counts_only_when_cuda_fails_for_it(code: str, status: str) -> None:
    snapshot = machine(f"""
[driver]
uvm = false
[probes.cuda]
facts = [["cuInit", "{code}"]]
""")
    assert run(CAUSE, snapshot).status == status


def test_a_sandbox_that_hides_the_modules_has_its_nodes() -> None:
    snapshot = machine("""
probes_left_out = "--no-probe"
[driver]
kernel_module = {unknown = "the driver answers, but its module's files are not visible here"}
uvm = {unknown = "/sys/module is not there"}
""")
    assert run(CAUSE, snapshot).status == "passed"


def test_a_jetson_has_a_module_of_another_name() -> None:
    snapshot = machine("""
probes_left_out = "--no-probe"
[[graphics]]
vendor = "nvidia"
address = ""
device_id = "tegra234"
kernel_driver = "nvgpu"
[driver]
state = "missing"
kernel_module = {absent = "/sys/module/nvidia"}
uvm = false
nvml_library = {absent = "libnvidia-ml.so.1"}
""")
    assert run(CAUSE, snapshot).status == "not-applicable"
    assert run(cause_named("nvml-library-missing"), snapshot).status == "not-applicable"


def test_the_fabric_manager_of_a_container_runs_on_the_host() -> None:
    snapshot = machine("""
[system.container]
runtime = "kubernetes"
driver_mounts = ["/dev/nvidia0"]
[probes.cuda]
facts = [["cuInit", "802 CUDA_ERROR_SYSTEM_NOT_READY"]]
""")
    (finding,) = run(CAUSE, snapshot).findings
    assert "on the host" in finding.remedies[0].text
    assert "580.65.06" in finding.remedies[1].text


NOT_READY = """
[probes.cuda]
facts = [["cuInit", "802 CUDA_ERROR_SYSTEM_NOT_READY"]]
"""


@each(
    ("capability", "fabric", "blamed"),
    [
        ('"9.0"', '{absent = "NVSwitch"}', "conf-compute"),
        ('"12.0"', '{absent = "NVSwitch"}', "conf-compute"),
        # NVML says nothing about the NVSwitches of an A100.
        ('"8.0"', '{absent = "NVSwitch"}', "nvidia-fabricmanager"),
        ('"9.0"', '{unknown = "NVML: Unknown Error"}', "nvidia-fabricmanager"),
        ('"9.0"', '"in-progress"', "nvidia-fabricmanager"),
        ('{unknown = "NVML: Unknown Error"}', '{absent = "NVSwitch"}', "nvidia-fabricmanager"),
    ],
)
def test_no_fabric_manager_is_started_for_a_gpu_without_switches(
    capability: str, fabric: str, blamed: str
) -> None:
    gpu = f"[driver.gpus.0]\ncompute_capability = {capability}\n"
    snapshot = machine(f"{NOT_READY}{gpu}[driver.gpus.0.health]\nfabric = {fabric}\n")
    (finding,) = run(CAUSE, snapshot).findings
    assert blamed in str(command_of(finding.remedies[0]))


def test_not_ready_and_no_list_of_gpus() -> None:
    snapshot = machine(f'{NOT_READY}[driver]\ngpus = {{unknown = "NVML: Unknown Error"}}\n')
    (finding,) = run(CAUSE, snapshot).findings
    assert "fabric manager" in finding.message


def test_a_driver_that_was_not_asked_and_a_module_that_was_not_seen_are_a_gap() -> None:
    snapshot = machine("""
probes_left_out = "--no-probe"
[driver]
state = {unknown = "NVML could not be asked"}
kernel_module = {unknown = "/sys is not mounted"}
""")
    assert run(CAUSE, snapshot).reasons == ("/sys is not mounted",)
