"""What a command will start, told from its words and its file."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cases import each
from whygpu.launch.command import (
    chooses_environment,
    frameworks_named,
    ignores_python_variables,
    interpreter_of,
)

ENVIRON = {"PATH": str(Path(sys.executable).parent)}


def program(folder: Path, content: str, name: str = "tool") -> str:
    file = folder / name
    file.write_text(content)
    file.chmod(0o755)
    return str(file)


def test_python_itself() -> None:
    assert interpreter_of([sys.executable, "x.py"], ENVIRON) == sys.executable
    assert interpreter_of(["python", "-m", "x"], ENVIRON) == f"{ENVIRON['PATH']}/python"
    assert interpreter_of(["no-such-command"], ENVIRON) is None


def test_python_among_the_words() -> None:
    python = f"{ENVIRON['PATH']}/python"
    environ = {"PATH": f"{ENVIRON['PATH']}:/usr/bin:/bin"}
    for before in (["env", "A=b"], ["timeout", "5"], ["nice", "-n", "5"]):
        assert interpreter_of([*before, "python", "x.py"], environ) == python
    assert interpreter_of(["sh", "-c", "python x.py"], environ) is None
    for chooser in ("uv", "/opt/bin/conda"):
        assert interpreter_of([chooser, "run", "python", "x.py"], environ) is None
        assert chooses_environment([chooser, "run", "python"])
    assert not chooses_environment(["python", "uv"])


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("#!{python}\n", True),
        ("#!{python} -s\nx", True),
        ("#!/usr/bin/env python\n", True),
        ("#!/usr/bin/env -S python -u\n", True),
        ("#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n", True),
        ("#!/bin/bash\npython x.py\n", False),
        ("#!/usr/bin/env bash\n", False),
        ("", False),
        ("\x7fELF", False),
    ],
)
def test_a_script_says_it_in_its_first_line(tmp_path: Path, head: str, found: bool) -> None:
    # The kernel ends the name in a first line at a blank, which this interpreter's path may have.
    linked = tmp_path / "python3"
    linked.symlink_to(sys.executable)
    if " " in str(linked):
        pytest.skip(f"no path without blanks: {linked}")
    tool = program(tmp_path, head.format(python=linked))
    expected = {str(linked), f"{ENVIRON['PATH']}/python"}
    answer = interpreter_of([tool], ENVIRON)
    assert answer in expected if found else answer is None


@each(
    ("words", "option"),
    [
        (["x.py", "-I"], None),
        (["-c", "print(1)", "-S"], None),
        (["-m", "x", "-E"], None),
        (["-I", "x.py"], "-I"),
        (["-uE", "x.py"], "-E"),
        (["-W", "ignore", "-S", "x.py"], "-S"),
        (["-X", "dev", "x.py"], None),
        (["-Ic", "print(1)"], "-I"),
        (["-WError", "-XE", "x.py"], None),
        (["-", "-I"], None),
    ],
)
def test_options_that_keep_us_out(words: list[str], option: str | None) -> None:
    assert ignores_python_variables(["python", *words], ENVIRON) == option


def test_frameworks_that_a_file_imports(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import numpy as np, tensorflow as tf\nfrom torch.nn import Linear\n"
        "# import jax\ntext = 'import cupy'\nif True:\n    import keras\n"
    )
    named = frameworks_named([sys.executable, "-u", str(script), "--x"], ENVIRON)
    assert named == {"tensorflow", "torch", "keras"}
    assert frameworks_named([sys.executable, "-m", "train"], ENVIRON) == frozenset()
    assert frameworks_named(["no-such-command"], ENVIRON) == frozenset()


def test_frameworks_named_in_code_on_the_command_line() -> None:
    def named(*words: str) -> frozenset[str]:
        return frameworks_named([sys.executable, *words], ENVIRON)

    assert named("-c", "import os; import torch; print(1)", "-c") == {"torch"}
    assert named("-uc", "from jax import numpy") == {"jax"}
    assert named("train", "-c", "import torch") == frozenset()
    assert named("-c") == frozenset()
