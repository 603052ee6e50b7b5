"""Source that is small and describes something huge, and files that are no files."""

from __future__ import annotations

import itertools
import json
import os
import pathlib

import pytest

from tests import bounded
from whygpu.linter import lint_files
from whygpu.linter.one_file import FileResult
from whygpu.model.code_finding import FileProblem

HEAD = "import os\nimport tensorflow as tf\ngpus = tf.config.list_physical_devices()\ngpus[0]\n"
CHECK = "tf.test.is_gpu_available()"
TOO_LATE = "os.environ['CUDA_VISIBLE_DEVICES'] = ''"


def doubled(line: str, start: str) -> str:
    return start + "".join(line.format(last=number, next=number + 1) for number in range(60))


FOLLOWED = {
    "strings": doubled("a{next} = a{last} + a{last}\n", "a0 = 'text'\n"),
    "tuples": doubled("a{next} = (a{last}, a{last})\n", "a0 = (1, 2)\n")
    + doubled("b{next} = (b{last}, b{last})\n", "b0 = (1, 2)\n")
    + "if x:\n    c = a60\nelse:\n    c = b60\n",
    "choices": doubled(
        "a{next} = a{last} if x else b{last}\nb{next} = b{last} if y else a{last}\n",
        "a0 = 1\nb0 = 2\n",
    ),
    "powers": "a = 10 ** 10 ** 10\nb = 'a' * 10 ** 9\nc = f'{a:>1000000000}'\nd = b[::-1]\n",
    "a name that grows": "a = tf\n" + "a = a.part\n" * 20_000,
    "a value that grows": "a = f()\n" + "a = a.part\n" * 20_000 + "if x:\n    a = 1\n",
    "nested choices": f"x = {'(1 if ' * 60}1{' else 2)' * 60}\n",
    "nested loops": f"x = {'[y for y in z if ' * 30}1{']' * 30}\n",
    "a long function, often called": f"def f():\n    x = [{'1,' * 60_000}]\n" + "f()\n" * 10_000,
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_grows_without_end_is_unknown_and_the_rest_is_looked_at(
    tmp_path: pathlib.Path, name: str
) -> None:
    (tmp_path / "a.py").write_text(f"{HEAD}{FOLLOWED[name]}{CHECK}\n")
    ended = bounded.whygpu("lint", "a.py", folder=tmp_path)
    assert "WG715" in ended.stdout


REFUSED = {
    "conditions one after the other": ("assert tf.f(1)\n" * 20_000, "too many conditions"),
    "returns one after the other": (
        "def f():\n" + "    if tf.f(1): return\n" * 15_000,
        "too many conditions",
    ),
    "a million lines": ("a\n" * 1_000_000, "more than 200,000 tokens"),
    "a sum of many parts": (f"x = {'1 + ' * 900}1\n", "is nested too deeply"),
    "signs": (f"x = {'-' * 50_000}1\n", "it cannot be parsed"),
    "attributes": (f"x = tf{'.a' * 40_000}\n", "it cannot be parsed"),
    "a number": (f"x = {'9' * 1_000_000}\n", "Exceeds the limit"),
    "nine megabytes": ("#" * (9 << 20), "larger than 8 MiB"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_followed_is_said(tmp_path: pathlib.Path, name: str) -> None:
    text, why = REFUSED[name]
    (tmp_path / "a.py").write_text(f"{HEAD}{CHECK}\n{text}")
    ended = bounded.whygpu("lint", "a.py", folder=tmp_path)
    assert ended.code == 2
    assert "not checked" in ended.stdout
    assert why in " ".join(ended.stdout.split())


@pytest.mark.parametrize("option", ["--color=never", "--json", "--sarif", "--github"])
def test_thousands_of_findings_on_one_line(tmp_path: pathlib.Path, option: str) -> None:
    before = f"x = '{'a' * 4_000_000}'; "
    (tmp_path / "a.py").write_text(HEAD + before + "; ".join([CHECK] * 8_000) + "\n")
    ended = bounded.whygpu("lint", option, "a.py", folder=tmp_path)
    assert ended.stdout.count("WG715") >= 8_000


def test_the_caret_stands_under_its_place_in_a_long_line(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.py").write_text(f"{HEAD}x = '{'a' * 5_000}'; {CHECK}; y = '{'b' * 5_000}'\n")
    lines = bounded.whygpu("lint", "a.py", folder=tmp_path).stdout.splitlines()
    line, marks = next((text, below) for text, below in itertools.pairwise(lines) if CHECK in text)
    assert line[marks.index("^") : marks.rindex("~") + 1] == CHECK


NOTEBOOKS = {
    "nested lists": b"[" * 100_000,
    "nested cells": b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "millions of values": b'{"cells": [' + b"{}," * 2_500_000 + b"{}]}",
    "thousands of cells": b'{"cells": ['
    + b'{"cell_type": "code", "source": "x = 1"},' * 100_000
    + b"{}]}",
}


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_that_are_bombs(tmp_path: pathlib.Path, name: str) -> None:
    (tmp_path / "a.ipynb").write_bytes(NOTEBOOKS[name])
    ended = bounded.whygpu("lint", "a.ipynb", folder=tmp_path)
    assert (ended.code, "not checked" in ended.stdout) == (2, True)


def test_a_cell_that_nests_too_deeply_is_left_out(tmp_path: pathlib.Path) -> None:
    cells = [
        {"cell_type": "code", "source": text} for text in (f"x = {'-' * 50_000}1", HEAD + CHECK)
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    ended = bounded.whygpu("lint", "a.ipynb", folder=tmp_path)
    assert "cell 1 was skipped" in ended.stdout
    assert "WG715" in ended.stdout


@pytest.mark.parametrize("name", ["a.py", "a.ipynb", "requirements.txt", "README.md"])
@pytest.mark.parametrize("kind", ["pipe", "endless device", "folder", "socket"])
def test_what_is_no_file_is_not_waited_for(tmp_path: pathlib.Path, name: str, kind: str) -> None:
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless device":
        path.symlink_to("/dev/zero")
    elif kind == "socket":
        os.mknod(path, 0o140600)
    else:
        path.mkdir()
    (tmp_path / "b.py").write_text(f"{HEAD}{CHECK}\n")
    ended = bounded.whygpu("lint", ".", folder=tmp_path)
    assert "WG715" in ended.stdout
    if name.startswith("a.") and kind != "folder":
        assert f"{name}:1: not checked" in ended.stdout
        assert "not a regular file" in ended.stdout or "cannot be read" in ended.stdout


def test_the_output_of_a_command_is_linted(tmp_path: pathlib.Path) -> None:
    """`whygpu lint <(command)` names a pipe that is open already."""
    program = """
        import os
        ours, theirs = os.pipe()
        os.write(theirs, sys.argv[1].encode())
        os.close(theirs)
        from whygpu.cli.main import main
        sys.exit(main(["lint", f"/dev/fd/{ours}"]))
    """
    ended = bounded.run(program, f"{HEAD}{CHECK}\n", folder=tmp_path)
    assert "WG715" in ended.stdout


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("x = " + "[" * 100_000, "it is nested too deeply"),
        ("#" * (2 << 20), "it is larger than 1 MiB"),
    ],
)
def test_settings_that_are_bombs(tmp_path: pathlib.Path, content: str, why: str) -> None:
    (tmp_path / "pyproject.toml").write_text(content)
    (tmp_path / "a.py").write_text(HEAD + TOO_LATE)
    ended = bounded.whygpu("lint", "a.py", folder=tmp_path)
    assert (ended.code, why in ended.stdout) == (1, True), ended.stdout
    assert "1 finding in 1 of 2 files" in ended.stdout


def test_what_is_more_than_a_report_can_hold_is_counted() -> None:
    problem = FileProblem("a.py", 1, "unreadable", "it cannot be read")
    results = [FileResult(problems=(problem,))] * (lint_files.MOST_REPORTED + 5)
    made = lint_files.report(len(results), results)
    assert (len(made.problems), made.left_out) == (lint_files.MOST_REPORTED, 5)
