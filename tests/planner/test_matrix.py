"""What each release needs, as a row of `whygpu plan --matrix`."""

from __future__ import annotations

from tests.planner.small_table import TABLE, machine
from whygpu.model.install_plan import ReleaseNeeds
from whygpu.planner.matrix import matrix
from whygpu.planner.planning import make_plan
from whygpu.planner.wishes import parse_all


def rows(wish: str) -> dict[str, ReleaseNeeds]:
    found = matrix(make_plan(machine(), parse_all([wish]), TABLE))
    return {row.requirement: row for row in found}


def test_a_row_has_what_the_release_needs() -> None:
    found = rows("tensorflow")
    assert list(found)[:2] == ["tensorflow[and-cuda]==2.21.0", "tensorflow[and-cuda]==2.20.0"]
    newest = found["tensorflow[and-cuda]==2.21.0"]
    assert (newest.breaks, newest.python, newest.glibc) == ("defect", "3.10-3.13", "2.27")
    assert (newest.cuda, newest.cudnn, newest.driver) == ("12.5.1", "9", "525.60.13")
    assert newest.architectures[0] == "sm_60"
    assert found["tensorflow[and-cuda]==2.20.0"].breaks is None


def test_a_row_is_for_the_platform_of_the_machine() -> None:
    wishes = parse_all(["torch"])
    found = matrix(make_plan(machine(platform="win_amd64"), wishes, TABLE))
    assert [(row.requirement, row.glibc, row.driver) for row in found] == [
        ("torch==2.11.0+cu130", "", "580"),
        ("torch==2.11.0+cu128", "", "527.41"),
        ("torch==2.11.0+cu126", "", "527.41"),
        ("torch==2.8.0+cu128", "", "527.41"),
        ("torch==2.8.0+cu129", "", "527.41"),
        ("torch==2.8.0+cu126", "", "527.41"),
    ]
    (first, *_) = matrix(make_plan(machine(platform="macosx_arm64"), wishes, TABLE))
    assert (first.cuda, first.driver, first.architectures) == ("", "", ())


def test_a_release_of_several_wheels_has_the_needs_of_the_one_with_binaries() -> None:
    found = rows("jax")
    assert (found["jax[cuda12]==0.7.2"].python, found["jax[cuda12]==0.7.2"].glibc) == (
        "3.11-3.13",
        "2.27",
    )
    pure = found["jax==0.4.20"]
    assert (pure.python, pure.glibc, pure.cuda, pure.driver) == (">=3.9", "", "", "")


def test_of_several_driver_floors_the_one_that_certainly_suffices_is_shown() -> None:
    assert rows("jax")["jax[cuda13]==0.7.2"].driver == "580"
    answer = make_plan(machine(), parse_all(["tensorflow==2.20"]), TABLE)
    verdict = answer.candidates[0]
    older = verdict._replace(candidate=verdict.candidate._replace(cuda="9.2"))
    (row,) = matrix(answer._replace(candidates=(older,)))
    assert row.driver == "396.37"
