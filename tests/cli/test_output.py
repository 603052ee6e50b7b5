"""The one exit: what comes from outside cannot command a terminal, and nothing private gets out."""

from __future__ import annotations

import functools
import io
import json
import os
import pathlib
import re
import shlex
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.cases import each
from tests.samples import sample
from whygpu.causes import catalogue
from whygpu.cli import main as cli
from whygpu.cli import output, parser
from whygpu.model.batch import BatchResult
from whygpu.model.code_finding import LintReport, SourcePatch
from whygpu.model.commands import shell_text, shell_texts
from whygpu.model.comparison import ComparisonReport
from whygpu.model.differences import DiffAnswer
from whygpu.model.estimate import MemoryEstimate
from whygpu.model.explanation import Explanation
from whygpu.model.finding import Remedy
from whygpu.model.fix import FixAnswer, Undone
from whygpu.model.fleet import FleetReport
from whygpu.model.fleet_logs import FleetLogs
from whygpu.model.holders import HoldersReport
from whygpu.model.install_plan import Advice, PlanAnswer, ReleaseAnswer
from whygpu.model.observed import Known
from whygpu.model.outside_text import one_line, printable, without_sequences
from whygpu.model.policy import LaunchPlan, RunReport
from whygpu.model.profile import ProfileAnswer
from whygpu.model.remedy import Install, a_path, command_line
from whygpu.model.report import Report
from whygpu.model.requirement_file import FileAnswer
from whygpu.model.shell import quoted
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Installer
from whygpu.render import check_json as report_json
from whygpu.render import check_text as report_text
from whygpu.render import (
    compare_json,
    compare_text,
    explain_json,
    explain_text,
    lint_json,
    lint_text,
    memory_estimate,
    memory_find,
    memory_holders,
    plan_json,
    plan_text,
    run_json,
)
from whygpu.render import run_text as run_text
from whygpu.render.html import answers

SECRET = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz"
SEQUENCES = {
    "hidden": "\x1b[8m",
    "title": "\x1b]0;owned\x07",
    "link": "\x1b]8;;http://example.org\x1b\\",
    "one-character CSI": "\x9b31m",
    "one-character OSC": "\x9d0;owned\x9c",
    "bell": "\x07",
    "backspaces": "\x08\x08\x08",
    "overwriting": "\rfine",
    "clear": "\x1bc",
    "direction": "\u202e\u2066\u200f",
    "delete": "\x7f",
    "null": "\x00",
    "half a character": "\udc9b",
}
HOSTILE = "".join(SEQUENCES.values())
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
OURS = re.compile(r"\x1b\[[\d;]*m")


def assert_harmless(text: str) -> None:
    assert UNSAFE.search(text) is None, repr(UNSAFE.findall(text))


@each("sequence", SEQUENCES.values())
def test_nothing_that_a_terminal_obeys_is_printable(sequence: str) -> None:
    text = f"before{sequence}after"
    assert_harmless(printable(text))
    assert len(printable(text)) == len(text)
    printable(text).encode("utf-8")
    assert "\n" not in one_line(f"{text}\nline")


def test_lines_tabs_and_letters_stay() -> None:
    text = "naïve\tcafé\n日本 ✓ שלום 🙂"
    assert printable(text) == text
    assert without_sequences(f"\x1b[1m{text}\x9b0m\x1b]0;title\x07") == text


CAUSES = catalogue()
LINES: dict[type, tuple[Callable[..., str], ...]] = {
    LintReport: (lint_json.render_github,),
    LaunchPlan: (run_text.plan_text,),
    RunReport: (run_text.end_text,),
}
PAGES: dict[type, tuple[Callable[..., str], ...]] = {
    Report: (functools.partial(report_text.render, verbose=True),),
    Explanation: (functools.partial(explain_text.render, verbose=True),),
    LintReport: (functools.partial(lint_text.render, verbose=True),),
    HoldersReport: (memory_holders.render,),
    MemoryEstimate: (memory_estimate.render,),
    BatchResult: (memory_find.render,),
    PlanAnswer: (plan_text.render,),
    ReleaseAnswer: (plan_text.render_chain,),
    ComparisonReport: (functools.partial(compare_text.render, verbose=True),),
}
DATA: dict[type, tuple[Callable[..., str], ...]] = {
    Report: (report_json.render,),
    Snapshot: (report_json.render_snapshot,),
    Explanation: (explain_json.render, explain_json.render_line),
    LintReport: (
        lint_json.render_json,
        functools.partial(lint_json.render_sarif, causes=CAUSES, version="1"),
    ),
    HoldersReport: (memory_holders.render_json,),
    MemoryEstimate: (memory_estimate.render_json,),
    BatchResult: (memory_find.render_json,),
    PlanAnswer: (plan_json.render,),
    ReleaseAnswer: (plan_json.render_chain,),
    ComparisonReport: (compare_json.render,),
    LaunchPlan: (run_json.plan_json,),
    RunReport: (functools.partial(run_json.report_json, trace=None),),
}
HTML_PAGES = [
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
    PlanAnswer,
    ProfileAnswer,
    ReleaseAnswer,
    Report,
    RunReport,
    Snapshot,
    Undone,
]
"""The types of answers that --html can write."""


def test_every_answer_with_a_page_is_tried() -> None:
    # The page of a cause contains nothing from outside, and a patch is shown as it is.
    others = {"Cause", "SourcePatch"}
    assert {kind.__name__ for kind in HTML_PAGES} == set(answers.MODULES) - others


def test_a_patch_stays_text() -> None:
    shown = answers.fragment(
        SourcePatch(f"+{HOSTILE}<script>alert(1)</script>".encode("utf-8", "replace"), ())
    )
    assert_harmless(shown)
    assert "&lt;script&gt;alert" in shown


def made(kind: type, text: str) -> Any:
    """A value with this text in every field that may hold any."""
    value: Any = sample(kind, text)
    if kind is MemoryEstimate:
        return value._replace(framework="torch")
    if kind is DiffAnswer:
        reasons = tuple(reason._replace(sets=((0,),), suspects=(0,)) for reason in value.reasons)
        return value._replace(reasons=reasons)
    if kind is RunReport:
        op = {"op": text, "device": text, "count": 1, "seconds": None}
        why = {"op": text, "reason": text, "detail": text}
        transfer = {"source": text, "target": text, "count": 1, "bytes": None}
        trace = {
            "ops": [op, {**op, "op": f"tf.function {text}"}],
            "on_cpu_because": [why],
            "notes": [text],
            "folded": [op],
            "transfers": [transfer],
            "nothing_because": [text],
        }
        return value._replace(trace=trace)
    if kind in (PlanAnswer, ReleaseAnswer, FileAnswer):
        linux = value.machine._replace(platform=Known("linux_x86_64", text))
        return value._replace(machine=linux)
    if kind is LintReport:
        # A code is one of the catalogue's.
        found = value.findings[0]
        found = found._replace(finding=found.finding._replace(code=CAUSES[0].code))
        return value._replace(findings=(found,), ignored=(found,))
    return value


def forms(*tables: dict[type, tuple[Callable[..., str], ...]]) -> list[tuple[type, Any]]:
    return [(kind, render) for table in tables for kind, all in table.items() for render in all]


@each(("kind", "render"), forms(PAGES))
def test_no_page_obeys_or_tells_what_a_field_holds(
    capsys: pytest.CaptureFixture[str], kind: type, render: Any
) -> None:
    for color in ("never", "always"):
        output.page(made(kind, f"a {HOSTILE} b {SECRET} c"), render, color=color, names=("path",))
        said = capsys.readouterr().out
        assert SEQUENCES["hidden"] not in said
        assert_harmless(OURS.sub("", said) if color == "always" else said)
        for line in said.splitlines():
            # A name of a file is not redacted.
            assert SECRET not in line or re.search(r":1:1|:1: |^fixed ", line), line


@each(("kind", "render"), forms(LINES))
def test_no_lines_obey_or_tell_what_a_field_holds(
    capsys: pytest.CaptureFixture[str], kind: type, render: Any
) -> None:
    output.text(made(kind, f"a {HOSTILE} b {SECRET} c"), render)
    said = capsys.readouterr().out
    assert_harmless(said)
    assert SECRET not in said


@each(("kind", "render"), forms(DATA))
def test_no_json_obeys_or_tells_what_a_field_holds(
    capsys: pytest.CaptureFixture[str], kind: type, render: Any
) -> None:
    output.data(made(kind, f"a {HOSTILE} b {SECRET} c"), render)
    said = capsys.readouterr().out
    assert said.isascii()
    assert_harmless(said)
    assert SECRET not in said
    for line in [said] if said.count("\n") > 1 else said.splitlines():
        json.loads(line)


@each("kind", HTML_PAGES)
def test_a_saved_page_is_clean_too(tmp_path: pathlib.Path, kind: type) -> None:
    path = str(tmp_path / "report.html")
    hostile = f"a {HOSTILE} b {SECRET} <script>alert(1)</script>"
    as_html = functools.partial(answers.page, version="1")
    output.save(path, made(kind, hostile), as_html, is_json=False)
    text = pathlib.Path(path).read_text(encoding="utf-8")
    assert_harmless(text)
    assert SECRET not in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_words_with_a_fixed_meaning_are_not_taken_for_names() -> None:
    estimate = made(MemoryEstimate, "text")
    shown = output.public(estimate)
    assert shown == estimate
    assert type(shown) is MemoryEstimate


def test_what_is_public_already_stays_as_it_is() -> None:
    once = output.public((f"~/x {SECRET} /home/bob/y", "token=<removed>", "GPU-1a2b3c4d"))
    assert output.public(once) == once


@each(
    ("word", "shown"),
    [
        ("~/venv/bin/python", "~/venv/bin/python"),
        ("~/my logs/x", "~/'my logs/x'"),
        ("a b", "'a b'"),
        ("~", "'~'"),
        ("~/", "~/"),
        ("x~/y", "'x~/y'"),
    ],
)
def test_a_home_folder_stays_outside_of_quotes(word: str, shown: str) -> None:
    assert quoted(word) == shown


def test_a_command_to_paste_names_the_file_that_was_meant() -> None:
    home = os.path.expanduser("~")
    path = f"{home}/my logs/it is.log"
    remedy = Remedy("Read it.", command_line("cat", a_path(path), "/etc/hosts"))
    command = shell_text(output.public(remedy).action)
    assert command is not None
    assert home not in command
    done = subprocess.run(
        ["sh", "-c", f"printf '%s\\n' {command}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["cat", path, "/etc/hosts"]


def test_a_caret_is_left_out_where_the_line_has_changed_under_it() -> None:
    found = made(LintReport, "text").findings[0]
    found = found._replace(source=f"a = {SECRET}", column=7, end_line=1, end_column=12)
    report = LintReport(1, (found._replace(line=1),), (), ())
    shown, marked = output.public((report, lint_text.marked_lines(report)))
    text = lint_text.render(shown, width=80, color=False, marked=marked)
    assert "1 | a = <removed>\n" in text
    assert "^" not in text
    whole = report._replace(findings=(found._replace(column=5, end_column=5 + len(SECRET)),))
    shown, marked = output.public((whole, lint_text.marked_lines(whole)))
    text = lint_text.render(shown, width=80, color=False, marked=marked)
    assert "|     ^~~~~~~~~" in text


def test_a_bug_while_a_failure_is_told_is_still_a_bug(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Worse(Exception):
        def __str__(self) -> str:
            raise RuntimeError("it cannot even be told")

    def fail(options: object) -> int:
        raise Worse

    monkeypatch.setattr(parser.VERBS["rule"], "run", fail)
    assert cli.main(["rule"]) == 3
    assert "this is a bug in whygpu: Worse" in capsys.readouterr().err


def test_json_is_ascii_whatever_is_in_it() -> None:
    text = json.dumps({"a": "é🙂\x7f\u202e"}, ensure_ascii=False)
    stream = io.StringIO()
    stream.write(output._json_text(text))
    assert stream.getvalue().isascii()
    assert json.loads(stream.getvalue()) == {"a": "é🙂\x7f\u202e"}


def test_a_plan_shows_no_password_that_is_a_word_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--password", "hunter2hunter", "--api-key", "abcdef12345", "--epochs", "37"]
    for form in ([], ["--json"]):
        cli.main(["run", "--dry-run", "--no-repair", *form, "--", "python", "t.py", *words])
        shown = capsys.readouterr().out
        assert "hunter2" not in shown
        assert "abcdef" not in shown
        assert "--password" in shown
        assert "37" in shown


def test_what_is_private_is_removed_before_a_command_is_quoted() -> None:
    own = Installer(f"/a/it's {SECRET};/bin/python", "pip", False)
    advice = output.public(Advice(own, (), (Install(("torch==2.10.0",)),), (), ()))
    (command,) = shell_texts(advice.installs, advice.installer)
    assert SECRET not in command
    assert shlex.split(command)[1:] == ["-m", "pip", "install", "torch==2.10.0"]
