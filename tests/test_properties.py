"""What holds for every report: known machines, and the same with random parts changed."""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from random import Random, SystemRandom
from typing import Any

import pytest
from rich.cells import cell_len

from tests.kit import command_of, machine, machine_causes, machine_examples
from tests.machines.healthy import healthy, without_gpu
from tests.mutation import mutant
from tests.schemas import obeys
from whygpu import diagnose
from whygpu.diagnosis.verdicts import PROBED
from whygpu.model.codec import decode, encode
from whygpu.model.derived import usable_gpu
from whygpu.model.finding import MACHINE
from whygpu.model.observed import Absent
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot
from whygpu.render.check_json import render as render_json
from whygpu.render.check_text import render as render_text
from whygpu.render.marks import MARKS

RECORDED = sorted((pathlib.Path(__file__).parent / "machines").glob("*.json"))
AGREEMENT_DRAWS = 80
OUTPUT_DRAWS = 20
SEED = os.environ.get("WHYGPU_SEED")
"""The number of one random machine, as a failure prints it: only that one is then made."""


@cache
def known_machines() -> tuple[Snapshot, ...]:
    """Recorded machines, the two made ones, and every example of a fault."""
    pages = (example.text for cause in machine_causes() for example in machine_examples(cause))
    recorded = (decode(Snapshot, json.loads(path.read_text())) for path in RECORDED)
    return (*recorded, healthy(), without_gpu(), *map(machine, pages))


@cache
def seeds() -> list[Any]:
    """The known machines as JSON, in which no field is left out: any of them can be changed."""
    return [encode(known) for known in known_machines()]


def random_machine(seed: int) -> Snapshot:
    return decode(Snapshot, mutant(Random(seed), Snapshot, seeds()))


def seeds_to_draw(count: int) -> Iterator[int]:
    yield from [int(SEED)] if SEED else SystemRandom().sample(range(10**9), count)


def holds_for_random_machines(count: int, holds: Callable[[Report], None]) -> None:
    for seed in seeds_to_draw(count):
        try:
            holds(judged(random_machine(seed)))
        except Exception as error:
            again = f"WHYGPU_SEED={seed} python -m pytest tests/test_properties.py"
            raise AssertionError(f"fails for a random machine; to repeat it: {again}") from error


def judged(snapshot: Snapshot) -> Report:
    report = diagnose(snapshot)
    crashed = [outcome for outcome in report.outcomes if outcome.status == "crashed"]
    assert not crashed, crashed
    return report


@cache
def known_reports() -> list[Report]:
    return [judged(known) for known in known_machines()]


@pytest.mark.slow
def test_what_a_report_of_a_known_machine_says_agrees_with_itself() -> None:
    for report in known_reports():
        agrees_with_itself(report)


@pytest.mark.slow
def test_what_a_report_of_a_random_machine_says_agrees_with_itself() -> None:
    holds_for_random_machines(AGREEMENT_DRAWS, agrees_with_itself)


def agrees_with_itself(report: Report) -> None:
    every_finding_is_shown_once_and_under_a_root(report)
    verdicts_findings_and_exit_code_agree(report)


def every_finding_is_shown_once_and_under_a_root(report: Report) -> None:
    found = Counter((f.code, f.subject) for o in report.outcomes for f in o.findings)
    assert Counter((f.code, f.subject) for f in report.findings) == found
    roots = {finding.code for finding in report.root_causes}
    assert {f.explained_by for f in report.findings if f.explained_by} <= roots
    assert bool(report.findings) == bool(roots)


def verdicts_findings_and_exit_code_agree(report: Report) -> None:
    codes = {finding.code for finding in report.findings}
    for framework in report.frameworks:
        assert set(framework.because) <= codes
        assert not (framework.verdict == "gpu" and framework.because)
    faults = [finding for finding in report.findings if finding.severity != "info"]
    if report.exit_code == 0:
        assert report.verdict in ("gpu", "no-gpu")
        assert not report.undetermined
    assert (report.exit_code == 1) == (bool(faults) or report.verdict in ("cpu", "broken"))
    assert (MARKS[report.standing] == "✓") == (report.exit_code == 0)
    if "nothing to fix" in report.headline:
        assert not faults
    if report.verdict == "gpu":
        assert {f.verdict for f in report.frameworks if f.name in PROBED} <= {"gpu"}
        assert "gpu" in {f.verdict for f in report.frameworks}
    if report.verdict in ("cpu", "broken"):
        assert report.exit_code == 1
        named = {
            code for f in report.frameworks if f.verdict == report.verdict for code in f.because
        }
        mentioned = {code for code in codes if f"({code} " in report.headline}
        assert mentioned <= named or not report.frameworks
    if report.verdict == "no-gpu":
        assert "gpu" not in {f.verdict for f in report.frameworks if f.name in PROBED}
    # A framework that has computed on a GPU outranks files that show none.
    seen = "gpu" in {f.verdict for f in report.frameworks}
    if report.verdict == "cpu" and isinstance(usable_gpu(report.snapshot), Absent) and not seen:
        assert any(f.subject == MACHINE or f.cause == "non-nvidia-backend" for f in faults)


@pytest.mark.slow
def test_text_about_every_known_fault_keeps_its_width() -> None:
    for place, report in enumerate(filter(lambda report: report.findings, known_reports())):
        text_keeps_its_width(report, (40, 100)[place % 2])


@pytest.mark.slow
def test_output_on_random_machines_keeps_to_its_schema_and_width() -> None:
    def holds(report: Report) -> None:
        obeys("check", json.loads(render_json(report)))
        for width in (40, 100):
            text_keeps_its_width(report, width)

    holds_for_random_machines(OUTPUT_DRAWS, holds)


def text_keeps_its_width(report: Report, width: int) -> None:
    text = render_text(report, width=width, color=False, verbose=width == 100)
    remedies = [remedy for finding in report.findings for remedy in finding.remedies]
    commands = {command_of(remedy, report.snapshot) or "" for remedy in remedies}
    wide = [
        line
        for line in text.splitlines()
        if cell_len(line) > width and not any(line.strip() in c for c in commands)
    ]
    assert not wide
    assert all(root.code in text for root in report.root_causes)


@pytest.mark.slow
def test_a_failure_names_the_seed_that_makes_the_same_machine_again() -> None:
    def never_holds(report: Report) -> None:
        seen.append(report.snapshot)
        raise AssertionError

    seen: list[Snapshot] = []
    with pytest.raises(AssertionError, match=r"WHYGPU_SEED=\d+ python") as failure:
        holds_for_random_machines(1, never_holds)
    (seed,) = re.findall(r"WHYGPU_SEED=(\d+)", str(failure.value))
    assert seen == [random_machine(int(seed))]
