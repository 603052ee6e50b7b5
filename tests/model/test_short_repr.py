"""A report in a Python shell is one line that says the answer."""

from __future__ import annotations

import re

import pytest

import whygpu
from tests.cases import each
from tests.kit import machine
from tests.machines.healthy import healthy, without_gpu
from tests.samples import sample
from whygpu.launch.execution import Prepared
from whygpu.model import short_repr as texts
from whygpu.model.batch import BatchResult
from whygpu.model.code_finding import LintReport, SourcePatch
from whygpu.model.comparison import ComparisonReport
from whygpu.model.differences import DiffAnswer
from whygpu.model.estimate import MemoryEstimate
from whygpu.model.explanation import Explanation
from whygpu.model.fix import FixAnswer, Undone
from whygpu.model.fleet import FleetReport
from whygpu.model.fleet_logs import FleetLogs
from whygpu.model.holders import HoldersReport
from whygpu.model.install_plan import PlanAnswer, ReleaseAnswer
from whygpu.model.overview import Overview
from whygpu.model.policy import LaunchPlan, RunReport
from whygpu.model.profile import ProfileAnswer
from whygpu.model.report import Report
from whygpu.model.requirement_file import FileAnswer
from whygpu.model.snapshot import Snapshot

SAMPLED = (
    BatchResult,
    ComparisonReport,
    DiffAnswer,
    Explanation,
    FileAnswer,
    FixAnswer,
    FleetLogs,
    FleetReport,
    HoldersReport,
    LaunchPlan,
    LintReport,
    MemoryEstimate,
    Overview,
    ProfileAnswer,
    Report,
    RunReport,
    Snapshot,
    Undone,
)
SHORT = {kind.__name__ for kind in (*SAMPLED, PlanAnswer, Prepared, ReleaseAnswer, SourcePatch)}


def test_every_type_with_a_text_is_tested_here() -> None:
    assert set(texts._TEXTS) == SHORT


@each("kind", SAMPLED)
def test_whatever_it_holds_it_is_one_short_line_that_is_safe_to_print(kind: type) -> None:
    for text in ("word", "\x1b[2Jgone\nline " * 200):
        shown = repr(sample(kind, text))
        assert shown.startswith(f"<{kind.__name__}: ")
        assert len(shown) <= texts.LONGEST + len(kind.__name__) + 4
        assert shown.isprintable()


OLD_DRIVER = machine('only = ["torch"]\n[driver]\nversion = "470.57.02"\ncuda = "11.4"\n')


@each(
    ("report", "expected"),
    [
        (lambda: whygpu.diagnose(healthy()), "<Report: .*GPU.*; seen with .*python.*>"),
        (
            lambda: whygpu.diagnose(OLD_DRIVER),
            "<Report: .*; 1 problem: WG106 driver-too-old-for-cuda; seen with",
        ),
        (lambda: without_gpu(), "<Snapshot: taken .* on linux; no NVIDIA GPU; .*tensorflow 2"),
        (
            lambda: whygpu.explain("CUDA driver version is insufficient for CUDA runtime version"),
            "<Explanation: .*; root causes: WG106 driver-too-old-for-cuda, WG101",
        ),
        (
            lambda: whygpu.plan("torch", python="3.12", driver="580.65", gpu="H200", glibc="2.39"),
            "<PlanAnswer: torch 2.* fits; .*pip install torch",
        ),
        (
            lambda: whygpu.why_not("tensorflow==2.12", python="3.12", driver="535.54", gpu="T4"),
            r"<ReleaseAnswer: tensorflow 2.12.1 does not fit: it .*, you have 3.12",
        ),
        (lambda: whygpu.lint("x = 1\ny = 2\n"), "<LintReport: no findings in 1 file>"),
        (
            lambda: whygpu.plan_run("python train.py", "cpu"),
            "<Prepared: python train.py; [34] changes, no repairs",
        ),
        (lambda: whygpu.memory_holders(machine=without_gpu()), "<HoldersReport: no NVIDIA GPU>"),
    ],
)
def test_it_says_the_answer(report: object, expected: str) -> None:
    assert callable(report)
    shown = repr(report())
    assert re.match(expected, shown), shown


@pytest.mark.slow
def test_a_run_says_where_it_ran(capfd: pytest.CaptureFixture[str]) -> None:
    # On a busy machine it may live long enough for its memory to be seen.
    shown = re.sub(r"; peak \d+ KiB", "", repr(whygpu.run("true")))
    assert shown == "<RunReport: used no device; exit code 0>"
