"""Plans from the real release table: what is known to be true of published releases."""

from __future__ import annotations

import pytest

from tests.cases import each
from tests.planner.small_table import GTX_1080, RTX_5090, machine
from whygpu.model.install_plan import PlanAnswer
from whygpu.model.machine_spec import MachineSpec, PlannedGpu
from whygpu.planner.candidate_cache import CandidateCache
from whygpu.planner.candidates import Table, candidates
from whygpu.planner.planning import make_plan
from whygpu.planner.wishes import FRAMEWORKS, parse_all
from whygpu.tables.architectures import parse_code
from whygpu.tables.driver_floors import driver_floors
from whygpu.tables.releases import versions_of

TABLE = Table(versions_of)
H200 = PlannedGpu("H200", (9, 0), "data-center")


def plan(wishes: str, where: MachineSpec) -> PlanAnswer:
    return make_plan(where, parse_all(wishes.split()), TABLE)


def chosen(answer: PlanAnswer) -> list[str]:
    return [item.requirement for item in answer.plan.chosen] if answer.plan else []


@each("framework", FRAMEWORKS)
def test_every_candidate_with_a_build_can_be_judged(framework: str) -> None:
    found = candidates(framework, TABLE)
    assert found
    for item in found:
        assert all(parse_code(code) for code in item.architectures), item.requirement
        if item.needs_cuda and not item.no_build:
            assert driver_floors(item.cuda), item.requirement


@pytest.mark.parametrize(
    ("wishes", "where", "expected"),
    [
        ("tensorflow<2.22", machine(gpu=H200), ["tensorflow[and-cuda]==2.20.0"]),
        ("tensorflow", machine(driver="470.82"), ["tensorflow==2.13.1"]),
        ("tensorflow==2.15", machine(), ["tensorflow[and-cuda]==2.15.1"]),
        ("tensorflow", machine(python="3.10", platform="win_amd64"), ["tensorflow==2.10.1"]),
        ("torch<2.16", machine(gpu=GTX_1080), ["torch==2.7.1"]),
        # It pins cuda-toolkit==13.0.3, which was published as 13.0.3.0.
        ("torch==2.13.0", machine(gpu=H200), ["torch==2.13.0"]),
        (
            "tensorflow<2.22 jax<=0.12.0.1 torch<2.16",
            machine(python="3.12", gpu=RTX_5090),
            ["tensorflow[and-cuda]==2.20.0", "jax[cuda12]==0.12.0.1", "torch==2.10.0"],
        ),
        # The newest torch goes with the newest jax, and that with no tensorflow at all: the choice
        # of the first wish has to be undone.
        (
            "torch<2.16 jax<0.11 tensorflow<2.22 keras<=3.15.1",
            machine(python="3.11", driver="580.65", gpu=RTX_5090),
            [
                "torch==2.10.0",
                "jax[cuda12]==0.10.2",
                "tensorflow[and-cuda]==2.20.0",
                "keras==3.15.1",
            ],
        ),
    ],
)
def test_known_answers(wishes: str, where: MachineSpec, expected: list[str]) -> None:
    assert chosen(plan(wishes, where)) == expected


@pytest.mark.parametrize("version", ["2.16.1", "2.21.0"])
def test_the_known_defects_are_found_in_the_table(version: str) -> None:
    answer = plan("tensorflow", machine(python="3.12", gpu=H200))
    verdict = next(v for v in answer.candidates if v.candidate.version == version)
    assert verdict.breaks == "defect"


def test_a_conflict_of_pins_is_named() -> None:
    answer = plan("tensorflow==2.15 jax>=0.7,<=0.12.0.1", machine())
    assert answer.plan is None
    assert "tensorflow 2.15.1 needs nvidia-" in answer.conflict
    assert "jax-cuda12-plugin" in answer.conflict


def test_what_a_plan_installs_meets_every_need_of_what_it_installs() -> None:
    """The resolver's answer, checked without the resolver."""
    where = machine(python="3.12", gpu=RTX_5090)
    answer = plan("tensorflow jax torch keras", where)
    assert answer.plan is not None
    versions = dict(answer.plan.solution.packages)
    cache = CandidateCache(where, TABLE)
    checked = 0
    for name, version in versions.items():
        row = next(row for row in versions_of(name) if row.version == version)
        for need in cache.needs_of(name, row):
            package = need.name.partition("[")[0]
            if package in versions:
                allowed = {item.version for item in cache.allowed(package, {need.specifier})}
                assert versions[package] in allowed, need
                checked += 1
    assert checked > 20
