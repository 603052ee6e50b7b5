"""Machines with one fault each: the whole engine must name one root cause, and the right one."""

from __future__ import annotations

from typing import Any, get_args

from tests.cases import each
from tests.causes.driver_machines import (
    CASES,
    DRIVER,
    DXG,
    IN_A_CONTAINER,
    NO_DRIVER,
    NOT_LOADED,
    ON_BARE_METAL,
    SILENT,
    Case,
    container,
    library,
    machine_with,
    on_the_cpu,
)
from tests.kit import cause_named, run
from tests.machines.healthy import healthy, known
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import diagnose
from whygpu.model.commands import shell_text
from whygpu.model.driver import DriverState, XidCount
from whygpu.model.environment import Environment, GpuSelection, IgnoredEntry
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot


def roots(report: Report) -> list[str]:
    crashed = [outcome for outcome in report.outcomes if outcome.status == "crashed"]
    assert not crashed
    return [finding.cause for finding in report.root_causes]


each_case = each("case", CASES, ids=lambda case: case.name)


@each_case
def test_one_fault_gives_one_root_cause(case: Case) -> None:
    report = diagnose(case.machine, catalogue())
    assert roots(report) == ([case.root] if case.root else []), report.root_causes


@each("case", [case for case in CASES if case.static], ids=lambda case: case.name)
def test_without_probes_the_same_root_cause_comes_out(case: Case) -> None:
    machine = case.machine._replace(probes=(), probes_left_out="--no-probe")
    report = diagnose(machine, catalogue())
    assert roots(report) == ([case.root] if case.root else []), report.root_causes


def test_every_state_of_the_driver_has_its_row() -> None:
    assert set(ON_BARE_METAL) == set(IN_A_CONTAINER) == set(get_args(DriverState))


LOGIN_NODE_STATES: tuple[DriverState, ...] = ("missing", "not-loaded", "failed", "working")


@each("state", LOGIN_NODE_STATES)
@each("place", ["bare", "docker"])
def test_the_libraries_of_a_driver_are_no_gpu(state: DriverState, place: str) -> None:
    """A login node: libcuda and NVML are installed, and nothing is on the bus."""
    driver = NOT_LOADED._replace(
        state=known(state), gpus=known(()) if state == "working" else SILENT
    )
    changes: dict[str, Any] = {"graphics": Absent("graphics device in /sys/bus/pci/devices")}
    if place == "docker":
        changes["container"] = container()
    machine = on_the_cpu(machine_with(driver, **changes))
    report = diagnose(machine, catalogue())
    assert report.findings == ()
    assert report.verdict == "no-gpu"
    # Nothing shows a card that has no power.
    assert ("although NVIDIA's driver is installed" in report.headline) is (place == "bare")


def test_a_wsl_machine_without_traces_of_nvidia_is_left_undetermined() -> None:
    bare = NO_DRIVER._replace(device_nodes=known((DXG,)))
    report = diagnose(on_the_cpu(machine_with(bare, wsl=known(2))), catalogue())
    assert report.findings == ()
    assert "wsl-no-gpu" in [outcome.cause for outcome in report.undetermined]


def test_no_driver_and_a_cpu_build_are_two_faults() -> None:
    machine = on_the_cpu(machine_with(NO_DRIVER))
    frameworks = machine.target.frameworks
    assert isinstance(frameworks, Known)
    changed = tuple(
        item._replace(build=item.build._replace(kind=known("cpu")), libraries=Absent("CPU build"))
        if item.name == "torch"
        else item
        for item in frameworks.value
    )
    target = machine.target._replace(frameworks=known(changed))
    report = diagnose(machine._replace(target=target), catalogue())
    assert sorted(roots(report)) == ["cpu-only-build", "no-nvidia-driver"]


def test_no_driver_and_a_stub_that_would_hide_it_are_two_faults() -> None:
    stub = library("libcuda.so.1", "12.8", "toolkit-stub", "/usr/local/cuda/lib64/stubs")
    machine = machine_with(NO_DRIVER._replace(cuda_library=stub))
    report = diagnose(on_the_cpu(machine, "34 CUDA_ERROR_STUB_LIBRARY"), catalogue())
    assert sorted(roots(report)) == ["library-path-conflict", "no-nvidia-driver"]


def test_a_wrong_selection_is_not_blamed_where_the_driver_has_no_gpu() -> None:
    ignored = (IgnoredEntry("0", "there is no GPU 0: this machine has none"),)
    selection = known(GpuSelection("0", known(()), ignored))
    machine = machine_with(DRIVER._replace(gpus=known(())), environment=Environment((), selection))
    assert roots(diagnose(on_the_cpu(machine), catalogue())) == ["nvidia-kernel-module-state"]


def with_xids(*xids: XidCount, container: Any = None) -> Snapshot:
    machine = healthy()
    if container is not None:
        machine = machine._replace(system=machine.system._replace(container=container))
    return machine._replace(driver=machine.driver._replace(xids=Known(xids, "dmesg")))


def test_an_xid_in_the_kernel_log_is_a_warning_with_the_reset_of_that_gpu() -> None:
    report = diagnose(with_xids(XidCount("0000:41:00", 95, 3, 77)), catalogue())
    (finding,) = report.findings
    assert (finding.cause, finding.severity) == ("ecc-xid-hardware-error", "warning")
    assert "Xid 95 for GPU 0 3 times" in finding.message
    assert shell_text(finding.remedies[0].action) == "sudo nvidia-smi --gpu-reset -i 0"
    assert report.verdict == "gpu"


def test_an_xid_of_a_gpu_that_is_gone_has_no_reset_for_another_one() -> None:
    (finding,) = diagnose(with_xids(XidCount("0000:86:00", 95, 1, 77)), catalogue()).findings
    assert "the GPU at 0000:86:00 once" in finding.message
    assert finding.remedies[0].action is None


def test_a_container_does_not_report_xids_of_gpus_that_it_does_not_have() -> None:
    elsewhere, here = XidCount("0000:86:00", 95, 1, 77), XidCount("0000:41:00", 95, 1, 77)
    assert not diagnose(with_xids(elsewhere, container=container()), catalogue()).findings
    assert diagnose(with_xids(here, container=container()), catalogue()).findings


def test_a_kernel_log_that_may_not_be_read_takes_no_tick() -> None:
    machine = healthy()
    unread = machine.driver._replace(xids=Unknown("dmesg: Operation not permitted"))
    assert diagnose(machine._replace(driver=unread), catalogue()).standing == "fine"


def test_a_lost_gpu_is_explained_by_its_last_xid() -> None:
    seen = with_xids(XidCount("0000:41:00", 95, 3, 77), XidCount("0000:41:00", 79, 1, 900))
    seen = seen._replace(driver=seen.driver._replace(state=Known("lost", "NVML")))
    (finding,) = run(cause_named("ecc-xid-hardware-error"), seen).findings
    assert "the last Xid is 79" in finding.message
    assert finding.remedies[0].text.startswith("Restart the machine")
