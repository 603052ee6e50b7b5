"""Every scenario, and that there are enough of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.remedies import carry_out_remedies, differs, is_first_proof
from tests.lab.scenario import Scenario, run
from tests.lab.scenarios import every_scenario
from whygpu.causes import find_cause
from whygpu.tables import lab_proofs

EVERYDAY = [scenario for scenario in every_scenario() if not scenario.slow]

no_gpu_here = pytest.mark.skipif(
    Path("/dev/nvidiactl").exists(), reason="this machine has a driver of its own"
)


@no_gpu_here
@pytest.mark.parametrize("scenario", every_scenario(), ids=lambda scenario: scenario.name)
def test_scenario(scenario: Scenario, tmp_path: Path) -> None:
    examined = run(scenario, tmp_path / "examined")
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


def test_there_are_enough() -> None:
    names = [scenario.name for scenario in every_scenario()]
    assert len(names) == len(set(names))
    assert len(EVERYDAY) >= 40
    assert len(set.union(*(scenario.causes for scenario in EVERYDAY))) >= 28
    assert sum(not scenario.roots for scenario in EVERYDAY) >= 5
    errors = [sum(root.severity == "error" for root in scenario.roots) for scenario in EVERYDAY]
    assert sum(count >= 2 for count in errors) >= 5


def test_scenarios_name_causes_that_exist() -> None:
    for scenario in every_scenario():
        for slug in scenario.causes:
            assert find_cause(slug) is not None, f"{scenario.name} expects {slug}"


def test_every_root_cause_of_a_scenario_has_rows() -> None:
    expected = {
        (scenario.name, root.cause, root.subject)
        for scenario in EVERYDAY
        for root in scenario.roots
    }
    assert {row[:3] for row in lab_proofs.ROWS} == expected
