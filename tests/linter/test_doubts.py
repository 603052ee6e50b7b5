"""Where a finding stands decides whether it is one, and how much is said about it."""

from __future__ import annotations

import json
import pathlib
import time

from tests.cases import each
from tests.kit import lint
from whygpu.linter.lint_files import lint_files
from whygpu.linter.settings import Settings

MOVE = "x = torch.ones(3)\n{}x.to('cuda')\n"


def severities(text: str, path: str = "example.py") -> list[tuple[str, str]]:
    return [(item.finding.code, item.finding.severity) for item in lint(text, path=path)]


FOUND = [("WG726", "error")]
IN_TEST = [("WG726", "info")]
LOST = "x = torch.ones(3)\nx.to('cuda')\n"


def in_function(head: str, body: str = LOST) -> str:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"import torch\n{head}\n{lines}"


NOT_REACHED = {
    "after return": in_function("def f():", "return 1\n" + LOST),
    "after exit": in_function("def f():", "sys.exit()\n" + LOST),
    "after the end of the program": "import torch\nraise SystemExit\n" + LOST,
    "below if False": in_function("if False:"),
    "below while 0": in_function("while 0:"),
    "the other branch of if True": "import torch\nif True:\n    pass\nelse:\n"
    "    x = torch.ones(3)\n    x.to('cuda')\n",
    "an error that is wanted": in_function("with pytest.raises(RuntimeError):"),
    "an error that is wanted, as a method": in_function("with self.assertRaises(RuntimeError):"),
}


@each("text", NOT_REACHED.values(), ids=NOT_REACHED.keys())
def test_what_never_runs_or_is_meant_to_fail_is_no_finding(text: str) -> None:
    assert severities(text) == []


@each(
    "text",
    [
        in_function("def f(y):", "if y:\n    return 1\n" + LOST),
        in_function("if True:"),
        in_function("with pytest.warns(UserWarning):"),
    ],
)
def test_what_may_run_is_a_finding(text: str) -> None:
    assert severities(text) == FOUND


@each(
    "comment",
    ["# Wrong: the result is lost", "# ❌", "# Don't do this", "# wrong way!", "# BAD"],
)
def test_an_example_of_the_wrong_way_is_no_finding(comment: str) -> None:
    assert severities("import torch\n" + MOVE.format(comment + "\n")) == []


@each(
    "comment",
    [
        "# this fails",
        "# not kept on purpose",
        "# This will fail if CUDA is not available",
        "# Bad batches are skipped",
        "# wrong labels stay on the CPU",
        "# This is broken, no idea why",
    ],
)
def test_a_comment_that_may_be_about_something_else_makes_a_note(comment: str) -> None:
    """It may be about the data, or say that the author has seen the defect."""
    text = "import torch\n" + MOVE.format(comment + "\n")
    assert severities(text) == [("WG726", "info")]
    assert lint(text)[0].finding.message.endswith(
        "; a comment here says that it is meant, or that it is wrong"
    )


@each("comment", ["# move it", "# this is not wrong", "# badly needed", "# fails without a GPU"])
def test_other_comments_change_nothing(comment: str) -> None:
    assert severities("import torch\n" + MOVE.format(comment + "\n")) == FOUND


def test_a_comment_that_names_the_machine_makes_a_note() -> None:
    text = "import torch\n{}torch.cuda.set_device(3)\n"
    assert severities(text.format("")) == [("WG720", "warning")]
    assert severities(text.format("# suppose you have four cards\n")) == [("WG720", "info")]
    assert severities(text.format("# assume nothing\n")) == [("WG720", "warning")]


def test_a_comment_about_the_machine_excuses_only_what_depends_on_it() -> None:
    assert severities("import torch\n" + MOVE.format("# this needs a GPU\n")) == FOUND


GOOD = "\n\ndef good_move(x):\n    return x.to('cuda')\n"


@each(
    ("text", "path"),
    [
        (in_function("def bad_move():") + GOOD, "example.py"),
        (in_function("class BadMove:") + GOOD, "example.py"),
        (in_function("def wrong():"), "example.py"),
        (in_function("def move():"), "bad_example2.py"),
        (in_function("def move():"), "common-mistakes.py"),
    ],
)
def test_a_name_that_says_that_it_is_the_wrong_way_makes_a_note(text: str, path: str) -> None:
    assert severities(text, path) == [("WG726", "info")]
    assert "may mean that this shows a mistake" in lint(text, path=path)[0].finding.message


@each(
    ("head", "path"),
    [
        ("def naive_bayes_train():", "example.py"),
        ("class NaiveAttention:", "example.py"),
        ("def broken_stick():", "example.py"),
        ("def mask_bad_pixels():", "bad_channels.py"),
        ("def train():", "wrong_answers_model.py"),
        ("def badge():", "broken_arrow/main.py"),
    ],
)
def test_a_name_that_is_about_something_else_changes_nothing(head: str, path: str) -> None:
    assert severities(in_function(head), path=path) == FOUND


def test_a_name_silences_no_note() -> None:
    body = (
        "for x in loader:\n    loss = model(x.cuda()).mean()\n    loss.backward()\n    print(loss)"
    )
    assert severities(in_function("def bad():", body)) == [("WG735", "info")]


def test_many_findings_in_one_file_take_little_time() -> None:
    """Each was compared with all statements before it, and searched the whole file."""
    text = "import torch\nF = False\nx = torch.ones(3)\n" + "if F:\n    x.to('cuda')\n" * 2000
    start = time.process_time()
    assert len(severities(text)) == 2000
    assert time.process_time() - start < 15


TESTS = {
    "a function": (in_function("def test_move():"), "example.py"),
    "a method": (
        "import torch\nclass MoveTest(unittest.TestCase):\n    def check(self):\n"
        "        x = torch.ones(3)\n        x.to('cuda')\n",
        "example.py",
    ),
    "a helper": (in_function("import pytest\ndef helper():"), "test_moves.py"),
    "a module that tests share": (in_function("def helper():"), "library/testing/helpers.py"),
    "a fixture": (in_function("@pytest.fixture\ndef moved():"), "example.py"),
}


@each(("text", "path"), TESTS.values(), ids=TESTS.keys())
def test_a_defect_in_a_test_is_a_note_that_says_so(text: str, path: str) -> None:
    assert severities(text, path) == IN_TEST
    assert "this is a test" in lint(text, path=path)[0].finding.message


def test_notes_about_speed_are_not_made_in_tests() -> None:
    body = (
        "for x in loader:\n    loss = model(x.cuda()).mean()\n    loss.backward()\n    print(loss)"
    )
    assert severities(in_function("def train():", body)) == [("WG735", "info")]
    assert severities(in_function("def test_train():", body)) == []


def test_a_program_that_evaluates_a_model_is_no_test() -> None:
    assert severities(in_function("def test(model, loader):")) == FOUND
    assert severities(in_function("def test_epoch(model, loader):")) == FOUND
    assert severities("import torch\n" + LOST, path="test_model.py") == FOUND


def test_a_function_with_the_name_of_a_test_that_the_program_calls_is_no_test() -> None:
    text = in_function("def test_accuracy(network):")
    assert severities(text) == IN_TEST
    assert severities(text + "\ntest_accuracy(Net())\n") == FOUND


def test_a_constant_that_switches_the_code_off_makes_a_note() -> None:
    text = "import torch\nCHECK = {}\nif {}CHECK:\n    x = torch.ones(3)\n    x.to('cuda')\n"
    assert severities(text.format("False", "")) == [("WG726", "info")]
    assert "CHECK is False in line 2" in lint(text.format("False", ""))[0].finding.message
    assert severities(text.format("True", "")) == FOUND
    assert severities(text.format("False", "not ")) == FOUND
    # Something may change it.
    assert severities("def f():\n    global CHECK\n    CHECK = 1\n" + text.format("0", "")) == FOUND


LATE = (
    "import torch\nprint(torch.cuda.is_available())",
    "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'",
)


@each(
    ("numbers", "expected"),
    [((1, 2), ["WG710"]), ((2, 1), []), ((None, 1), ["WG710"]), ((None, None), ["WG710"])],
)
def test_cells_that_were_run_in_another_order_have_no_sure_order(
    tmp_path: pathlib.Path, numbers: tuple[int | None, int | None], expected: list[str]
) -> None:
    cells = [
        {"cell_type": "code", "source": source, "execution_count": number}
        for source, number in zip(LATE, numbers, strict=True)
    ]
    path = tmp_path / "book.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    report = lint_files([str(path)], Settings())
    assert [item.finding.code for item in report.findings] == expected


def test_who_runs_cells_one_by_one_goes_on_after_an_error(tmp_path: pathlib.Path) -> None:
    cells = [
        {"cell_type": "code", "source": source}
        for source in ("import torch\nraise SystemExit", LOST)
    ]
    path = tmp_path / "book.ipynb"
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    (item,) = lint_files([str(path)], Settings()).findings
    assert (item.finding.code, item.cell, item.line) == ("WG726", 2, 2)


@each(
    ("path", "expected"),
    [
        ("docs/code/first.py", IN_TEST),
        ("site/_static/first.py", IN_TEST),
        ("docsearch/first.py", FOUND),
        ("src/docs.py", FOUND),
    ],
)
def test_an_example_of_the_documentation_is_a_note(
    path: str, expected: list[tuple[str, str]]
) -> None:
    assert severities("import torch\n" + LOST, path) == expected
