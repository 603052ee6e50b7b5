"""The mutation tool: what it changes, and that a change is carried out, noticed and reported."""

from __future__ import annotations

import ast
import json
import pathlib
import subprocess
import sys

import pytest

from tests.cases import each
from tools.mutate import ROOT, Result, chosen_modules, mutants, summary


def changes(source: str) -> list[str]:
    return [mutant.change for mutant in mutants(ast.parse(source))]


@each(
    ("source", "expected"),
    [
        ("def f(a):\n    return a < 1", ["a < 1 -> a <= 1", "a < 1 -> a >= 1", "1 -> 2"]),
        ("def f(a):\n    return a is None", ["a is None -> a is not None"]),
        ("def f(a, b):\n    return a and b", ["a and b -> a or b", "a and b -> b", "a and b -> a"]),
        ("def f(a):\n    return not a", ["not a -> a"]),
        ("def f(a):\n    return a + 0.5", ["a + 0.5 -> a - 0.5", "0.5 -> 0.75"]),
        ("def f():\n    return 'found'", ["'found' -> 'not-found'"]),
        ("def f():\n    return True", ["True -> False"]),
        ("def f(a):\n    return 1 if a else None", ["1 if a else None -> 1 if not a else None"]),
        ("def f(a):\n    a.clear()", ["a.clear() -> pass"]),
        ("def f(a):\n    return [b for b in a if b]", ["if b -> no condition"]),
        ("LIMIT = 3", ["3 -> 4"]),
        ("class A:\n    def f(self):\n        return self.a - 1", ["self.a - 1 -> self.a + 1"]),
    ],
)
def test_every_kind_of_expression_is_changed(source: str, expected: list[str]) -> None:
    assert set(expected) <= set(changes(source))


@each(
    "source",
    [
        '"""A page."""',
        'def f():\n    """A page."""\n    return None',
        "def f(a: int = 1) -> int | None:\n    pass",
        "def f(a):\n    raise ValueError(f'{a} is wrong: {1}')",
        "def f(a):\n    assert a > 1",
        "class A(NamedTuple):\n    size: int = 1",
        "import os",
        "Verdict = Literal['found', 'unknown']",
    ],
)
def test_text_annotations_and_defaults_are_left_alone(source: str) -> None:
    assert changes(source) == []


def test_a_change_covers_the_lines_of_its_own_statement_only() -> None:
    source = (
        "def f(a):\n    if (\n        a > 1\n    ):\n        return [\n            2,\n        ]"
    )
    covered = {mutant.change: mutant.lines for mutant in mutants(ast.parse(source))}
    assert covered["a > 1 -> a >= 1"] == range(2, 5)
    assert covered["2 -> 3"] == range(5, 8)


def test_a_folder_stands_for_its_modules() -> None:
    names = [path.name for path in chosen_modules(["diagnosis", "memory/answer"])]
    assert "engine.py" in names
    assert names[-1] == "answer.py"
    assert "__init__.py" not in names
    with pytest.raises(SystemExit, match="no module"):
        chosen_modules(["diagnosis/engines"])


def test_the_summary_names_survivors_and_shares() -> None:
    results = [Result("a/b", 3, "1 -> 2", "killed"), Result("a/b", 4, "x -> y", "not covered")]
    survivor, share = summary(results).splitlines()
    assert survivor == "a/b.py:4: x -> y  [not covered]"
    assert share.split() == ["a/b", "1", "of", "2", "killed", "(50.0%)"]


TEST = """from whygpu.tables.versions import release_numbers

def test_numbers():
    numbers = release_numbers("2.21.0rc1")
    assert {claim}
"""


@pytest.mark.slow
@each(
    ("claim", "survivors"),
    [
        ("numbers is not None", 1),
        ("numbers == (2, 21, 0)", 0),
    ],
)
def test_a_change_that_no_test_notices_survives(
    tmp_path: pathlib.Path, claim: str, survivors: int
) -> None:
    assert len(survivors_of(tmp_path, TEST.format(claim=claim))) == survivors


def survivors_of(folder: pathlib.Path, test: str) -> set[tuple[int, str]]:
    (folder / "test_it.py").write_text(test)
    result = folder / "result.json"
    words = ["--module", "tables/versions", "--tests", str(folder / "test_it.py")]
    command = [sys.executable, "-m", "tools.mutate", *words, "--json", str(result)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    rows = json.loads(result.read_text())
    return {(row["line"], row["change"]) for row in rows if row["outcome"] == "survived"}
