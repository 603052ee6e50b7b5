"""A tick stands before answers with exit code 0, in every verb, and before no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from tests.kit import machine as described
from tests.memory.test_estimator import GIB, estimate, judged
from tests.planner.small_table import TABLE, machine
from tests.render.test_compare_text import fault
from tests.render.test_memory_find import FITS, NOT, TWICE
from tests.render.test_memory_find import result as searched
from whygpu.memory.gpu_holders import judge
from whygpu.model.batch import BatchOutcome
from whygpu.model.code_finding import LintReport
from whygpu.model.comparison import Verdict
from whygpu.model.estimate import FitVerdict
from whygpu.model.explanation import Explanation, LogVerdict
from whygpu.model.observed import Unknown
from whygpu.model.standing import EXIT_CODES, Standing
from whygpu.planner.planning import make_plan, why_not
from whygpu.planner.wishes import parse, parse_all
from whygpu.render import (
    compare_text,
    explain_text,
    lint_text,
    memory_estimate,
    memory_find,
    memory_holders,
    plan_text,
)
from whygpu.render.marks import MARKS, PLAIN_MARKS

PLAIN: dict[str, Any] = {"width": 100, "color": False}


def test_every_standing_has_its_marks_and_its_code() -> None:
    assert set(get_args(Standing)) == MARKS.keys() == PLAIN_MARKS.keys() == EXIT_CODES.keys()
    assert [name for name, mark in MARKS.items() if mark == "✓"] == ["fine"]
    assert [name for name, mark in PLAIN_MARKS.items() if mark == "+"] == ["fine"]
    assert [name for name, code in EXIT_CODES.items() if code == 0] == ["fine", "answered"]


def answers() -> Iterator[tuple[str, int]]:
    """What each verb prints in all its verdicts, with its exit code; `check` is asked elsewhere."""
    for verdict in get_args(LogVerdict):
        for crashed in ((), ("WG101: KeyError",)):
            answer = Explanation(verdict, "a headline", (), (), (), (), crashed)
            yield explain_text.render(answer, verbose=False, **PLAIN), answer.exit_code
    for verdict in get_args(Verdict):
        report = fault()._replace(verdict=verdict)
        yield compare_text.render(report, **PLAIN), report.exit_code
    for verdict in get_args(FitVerdict):
        found = judged(estimate(64, GIB), room=8 * GIB)._replace(verdict=verdict)
        yield memory_estimate.render(found, **PLAIN), found.exit_code
    for outcome in get_args(BatchOutcome):
        result = searched("bracketed", FITS, TWICE, NOT)._replace(outcome=outcome)
        yield memory_find.render(result, **PLAIN), result.exit_code
    for toml in ('start = "no-gpu"', "", "[driver]\ngpus = {unknown = 'NVML could not be asked'}"):
        holders = judge(described(toml))
        yield memory_holders.render(holders, **PLAIN), holders.exit_code
    for files in (0, 3):
        linted = LintReport(files, (), (), ())
        yield lint_text.render(linted, **PLAIN), linted.exit_code
    yield from plans()


def plans() -> Iterator[tuple[str, int]]:
    for wishes, where in (
        ("tensorflow", machine()),
        ("tensorflow", machine()._replace(driver=Unknown("NVML could not be asked"))),
        ("tensorflow==2.20", machine(python="3.8")),
    ):
        made = make_plan(where, parse_all(wishes.split()), TABLE)
        for refuted in (False, True):
            answer = made._replace(refuted=refuted)
            yield plan_text.render(answer, **PLAIN), answer.exit_code
        release = why_not(where, parse(wishes), (), TABLE)
        yield plan_text.render_chain(release, **PLAIN), release.exit_code


def test_a_tick_and_the_exit_code_never_contradict_each_other() -> None:
    seen = set()
    for text, code in answers():
        mark = text[0]
        seen.add((mark, code))
        assert (mark == "✓") == (code == 0) or (mark, code) == ("·", 0), text
        assert (mark == "?") == (code == 4), text
    assert {("✓", 0), ("·", 0), ("✗", 1), ("?", 4)} == seen
