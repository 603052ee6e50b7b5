"""Every scenario, and that there are enough of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.scenario import Scenario, run
from tests.lab.scenarios import every_scenario
from whygpu.causes import find_cause

EVERYDAY = [scenario for scenario in every_scenario() if not scenario.slow]

no_gpu_here = pytest.mark.skipif(
    Path("/dev/nvidiactl").exists(), reason="this machine has a driver of its own"
)


@no_gpu_here
@pytest.mark.parametrize("scenario", every_scenario(), ids=lambda scenario: scenario.name)
def test_scenario(scenario: Scenario, tmp_path: Path) -> None:
    run(scenario, tmp_path)


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
