"""Findings in code as text, JSON, SARIF and annotations, whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

import whygpu
from tests.schemas import obeys
from whygpu.linter.lint_files import lint_causes
from whygpu.model.code_finding import FileProblem, LintReport
from whygpu.render import lint_json
from whygpu.render.lint_text import render
from whygpu.render.marks import PLAIN_MARKS

SOURCE = """\
import tensorflow as tf

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_visible_devices(cpus, "CPU")
tf.test.is_gpu_available()  # whygpu: ignore[WG715] an old driver
"""


def report(source: str = SOURCE) -> LintReport:
    made = whygpu.lint(source)
    problem = FileProblem("old.py", 3, "python2", "it is written for Python 2 (line 3: x)")
    return made._replace(problems=(problem,), files=2)


def text(made: LintReport, **options: Any) -> str:
    return render(made, **{"width": 80, "color": False, "marks": PLAIN_MARKS, **options})


def test_the_whole_text() -> None:
    assert text(report(), verbose=True) == (
        "x 1 finding in 1 of 2 files; --fix can fix 1; 1 ignored; 1 could not be read\n"
        "\n"
        "<source>:4:1: WG712 cpu-visibility-hides-nothing [fixable]\n"
        "  this makes the CPU visible, which it already is, and hides no GPU: operations\n"
        "  still run on the GPU\n"
        '      4 | tf.config.set_visible_devices(cpus, "CPU")\n'
        "        | ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
        '  fix  Write tf.config.set_visible_devices([], "GPU") to hide all GPUs.\n'
        "\n"
        "old.py:3: not checked\n"
        "  it is written for Python 2 (line 3: x)\n"
        "\n"
        "<source>:5:1: WG715 ignored: an old driver\n"
        "\n"
        "Details: whygpu rule WG712\n"
    )


def test_nothing_found_is_said_in_one_line() -> None:
    assert text(LintReport(1200, (), (), ())) == "+ no findings in 1,200 files\n"


def test_nothing_looked_at_is_not_fine() -> None:
    problem = FileProblem("x.py", 1, "syntax", "it is no Python")
    shown = text(LintReport(1, (), (), (problem,)))
    assert shown.startswith("? no findings in 0 files; 1 could not be read")


def test_what_was_not_looked_at_is_in_the_headline_and_takes_the_tick() -> None:
    cell = FileProblem("x.ipynb", 1, "syntax", "it is no Python", cell=3)
    bug = FileProblem("y.py", 1, "crashed", "WG700: KeyError")
    unread = FileProblem("z.py", 1, "unreadable", "Permission denied")
    cases = (
        ((unread,), "? no findings in 9 files; 1 could not be read\n", 2),
        ((cell,), "? no findings in 10 files; 1 cell could not be read\n", 2),
        ((bug,), "? no findings in 10 files; 1 check failed because of a bug in whygpu\n", 3),
        ((), "+ no findings in 10 files\n", 0),
    )
    for problems, headline, code in cases:
        made = LintReport(10, (), (), problems)
        assert text(made).startswith(headline)
        assert made.exit_code == code


def test_remarks_and_nothing_to_look_at_are_no_fault_and_earn_no_tick() -> None:
    assert text(LintReport(0, (), (), ())) == "- no file found that lint reads\n"
    made = whygpu.lint(
        "import tensorflow as tf\n"
        "with tf.device('/GPU:0'):\n    d = tf.data.Dataset.from_tensor_slices(x)\n"
    )
    assert {found.finding.severity for found in made.findings} == {"info"}
    assert text(made).startswith("- 1 finding in 1 of 1 file")
    assert made.exit_code == 0


@pytest.mark.parametrize("width", [40, 80, 100])
def test_it_fits_the_width_and_the_caret_points_at_the_defect(width: int) -> None:
    long = f"import tensorflow as tf\nx = {'1 + ' * 60} tf.config.set_memory_growth(1, True)\n"
    lines = text(whygpu.lint(long), width=width).splitlines()
    assert all(len(line) <= width for line in lines if not line.startswith("<source>"))
    shown, marks = (line for line in lines if "|" in line)
    start = marks.index("^")
    assert shown[start:].startswith("tf.config"[: width - start])


def test_color_only_where_it_is_asked_for() -> None:
    assert "\033" not in text(report())
    assert "\033[1;31m" in text(report(), color=True)


def test_the_json_fits_its_schema_and_has_the_promised_keys() -> None:
    data = json.loads(lint_json.render_json(report()))
    obeys("lint", data)
    assert list(data)[:2] == ["schema", "findings"]
    promised = ["code", "cause", "path", "line", "column", "message", "fixable"]
    assert list(data["findings"][0])[:7] == promised
    assert data["ignored"][0]["reason"] == "an old driver"
    assert data["problems"][0]["kind"] == "python2"


def test_sarif_has_what_code_scanning_needs() -> None:
    causes = lint_causes()
    data = json.loads(lint_json.render_sarif(report(), causes, "1"))
    assert data["version"] == "2.1.0"
    assert data["$schema"].endswith("sarif-2.1.0.json")
    (run,) = data["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "whygpu"
    assert [rule["id"] for rule in driver["rules"]] == [cause.code for cause in causes]
    for rule in driver["rules"]:
        assert rule["shortDescription"]["text"]
        assert rule["help"]["markdown"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    found, ignored = run["results"]
    for result in (found, ignored):
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "%3Csource%3E"
        region = place["region"]
        assert 1 <= region["startLine"] <= region["endLine"]
        assert region["startColumn"] >= 1
        assert region["endColumn"] >= 1
    assert "suppressions" not in found
    assert ignored["suppressions"] == [{"kind": "inSource", "justification": "an old driver"}]
    (notification,) = run["invocations"][0]["toolExecutionNotifications"]
    assert "Python 2" in notification["message"]["text"]


def test_annotations_for_github_are_escaped() -> None:
    made = report()
    odd = made.findings[0]._replace(path="a,b:c%.py")
    lines = lint_json.render_github(made._replace(findings=(odd,))).splitlines()
    assert lines[0].startswith(
        "::error file=a%2Cb%3Ac%25.py,line=4,title=WG712 cpu-visibility-hides-nothing,col=1,"
        "endLine=4,endColumn=43::this makes the CPU visible"
    )
    assert lines[1] == (
        "::warning file=old.py,line=3,title=whygpu lint::it is written for Python 2 (line 3: x)"
    )


def test_a_place_in_a_notebook_is_told_in_words() -> None:
    made = report()
    cell = made.findings[0]._replace(path="n.ipynb", cell=7)
    notebook = made._replace(findings=(cell,))
    assert "n.ipynb:cell 7:4:1: WG712" in text(notebook)
    assert "::cell 7, line 4: this makes" in lint_json.render_github(notebook)
    result = json.loads(lint_json.render_sarif(notebook, lint_causes(), "1"))["runs"][0]["results"][
        0
    ]
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 1}
    assert result["message"]["text"].startswith("cell 7, line 4: ")
