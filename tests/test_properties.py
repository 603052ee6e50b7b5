"""What holds for every report, whatever the machine: random snapshots, judged and shown."""

from __future__ import annotations

import json
import pathlib
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.kit import command_of, machine, machine_causes, machine_examples
from tests.machines.healthy import healthy, without_gpu
from tests.mutation import mutants
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


def seeds() -> list[Any]:
    """Machines that really were, the two made ones, and every example of a fault."""
    pages = (example.text for cause in machine_causes() for example in machine_examples(cause))
    made = [healthy(), without_gpu(), *map(machine, pages)]
    return [json.loads(path.read_text()) for path in RECORDED] + [encode(each) for each in made]


def judged(data: Any) -> Report:
    report = diagnose(decode(Snapshot, data))
    crashed = [outcome for outcome in report.outcomes if outcome.status == "crashed"]
    assert not crashed, crashed
    return report


random_machines = given(st.deferred(lambda: mutants(Snapshot, seeds())))
thorough = settings(
    # The same machines each time: what fails is what was changed. More are for when one has time.
    max_examples=100,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@thorough
@random_machines
def test_what_a_report_says_agrees_with_itself(data: Any) -> None:
    report = judged(data)
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
    if report.verdict == "cpu" and isinstance(usable_gpu(report.snapshot), Absent):
        assert any(f.subject == MACHINE or f.cause == "non-nvidia-backend" for f in faults)


@settings(thorough, max_examples=60)
@random_machines
def test_json_obeys_its_schema_and_text_its_width(data: Any) -> None:
    report = judged(data)
    obeys("check", json.loads(render_json(report)))
    for width in (40, 100):
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
