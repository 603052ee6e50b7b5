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
from tests.machines.healthy import known
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import diagnose
from whygpu.model.driver import DriverState
from whygpu.model.environment import Environment, GpuSelection, IgnoredEntry
from whygpu.model.observed import Absent, Known
from whygpu.model.report import Report


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
