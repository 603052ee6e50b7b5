"""Every scenario, and that there are enough of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.remedies import carry_out_remedies, differs, is_first_proof
from tests.lab.scenario import Scenario, run, watch_program
from tests.lab.scenarios import every_scenario
from whygpu.causes import find_cause
from whygpu.tables import lab_proofs

SMALL = [scenario for scenario in every_scenario() if not scenario.slow]
"""Those that start from an environment which `make targets` builds."""

no_gpu_here = pytest.mark.skipif(
    Path("/dev/nvidiactl").exists(), reason="this machine has a driver of its own"
)


@no_gpu_here
@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(scenario, id=scenario.name, marks=pytest.mark.full if scenario.like else ())
        for scenario in every_scenario()
    ],
)
def test_scenario(scenario: Scenario, tmp_path: Path) -> None:
    examined = run(scenario, tmp_path / "examined", watch=not scenario.is_probed)
    if scenario.slow:
        # No rows are kept of the large environments.
        return
    trials = carry_out_remedies(scenario, examined, tmp_path / "mended", is_first_proof)
    rows = [row for row in lab_proofs.ROWS if row.scenario == scenario.name]
    for trial in trials:
        assert trial.result != "fails", trial
        wrong = differs(trial, rows)
        assert not wrong, f"{trial}\n{wrong}; run python -m tools.carry_out_remedies --write"
    assert len(rows) == len(trials), "there are rows about remedies that no longer exist"


@no_gpu_here
@pytest.mark.full
@pytest.mark.parametrize(
    "scenario",
    [scenario for scenario in every_scenario() if scenario.is_probed],
    ids=lambda scenario: scenario.name,
)
def test_a_program_meets_the_fault_without_whygpu(scenario: Scenario, tmp_path: Path) -> None:
    watch_program(scenario, tmp_path)


def test_what_only_the_long_run_has_is_shown_by_others() -> None:
    by_name = {scenario.name: scenario for scenario in SMALL}
    for scenario in SMALL:
        others = [by_name[name] for name in scenario.like]
        assert not any(other.like for other in others), scenario.name
        if others:
            assert scenario.causes <= set.union(*(other.causes for other in others)), scenario.name


def test_a_remedy_of_every_cause_is_carried_out_each_time() -> None:
    only_in_the_long_run = {scenario.name for scenario in SMALL if scenario.like}
    first: dict[str, str] = {}
    for row in lab_proofs.ROWS:
        if row.result == "mends":
            first.setdefault(row.cause, row.scenario)
    assert first
    assert only_in_the_long_run.isdisjoint(first.values())


def test_there_are_enough() -> None:
    names = [scenario.name for scenario in every_scenario()]
    assert len(names) == len(set(names))
    assert len(SMALL) >= 40
    assert len(set.union(*(scenario.causes for scenario in SMALL))) >= 28
    assert sum(not scenario.roots for scenario in SMALL) >= 5
    errors = [sum(root.severity == "error" for root in scenario.roots) for scenario in SMALL]
    assert sum(count >= 2 for count in errors) >= 5


def test_scenarios_name_causes_that_exist() -> None:
    for scenario in every_scenario():
        for slug in scenario.causes:
            assert find_cause(slug) is not None, f"{scenario.name} expects {slug}"


def test_every_root_cause_of_a_scenario_has_rows() -> None:
    expected = {
        (scenario.name, root.cause, root.subject) for scenario in SMALL for root in scenario.roots
    }
    assert {row[:3] for row in lab_proofs.ROWS} == expected
