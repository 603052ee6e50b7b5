"""What --diff prints is a patch: git and patch apply it, and the result is what --fix makes."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from whygpu.cli import main as cli
from whygpu.linter.fix import fixed
from whygpu.linter.lint_files import lint_causes
from whygpu.linter.settings import Settings

DEFECT = b"import tensorflow as tf\ntf.config.set_memory_growth(1, True)\n"
NOTEBOOK = json.dumps(
    {
        "cells": [
            {
                "cell_type": "code",
                "execution_count": None,
                "metadata": {},
                "outputs": [],
                "source": DEFECT.decode().splitlines(keepends=True),
            }
        ],
        "metadata": {},
        "nbformat": 4,
        "nbformat_minor": 5,
    },
    indent=1,
).encode()

CONTENTS = {
    "plain": DEFECT,
    "windows": DEFECT.replace(b"\n", b"\r\n"),
    "mixed ends": DEFECT.replace(b"\n", b"\r\n", 1) + b"x = 1\r\n",
    "no end": DEFECT.rstrip(),
    "windows, no end": DEFECT.replace(b"\n", b"\r\n").rstrip(),
    "latin-1": b"# -*- coding: latin-1 -*-\n# Gr\xf6\xdfe\n" + DEFECT,
    "other line ends": b"# a\x0cb\xe2\x80\xa8c\x1cd\xc2\x85e\n" + DEFECT,
    "byte order mark": b"\xef\xbb\xbf" + DEFECT,
    "old Macs": DEFECT.replace(b"\n", b"\r"),
    "controls": b"# \x1b[31m \xc2\x9b \x08 \n" + DEFECT,
    "a secret": b"token = 'hf_AbCdEfGhIjKlMnOpQrStUvWxYz'\n" + DEFECT,
}
NAMES = (
    *("plain.py", "two words.py", "tab\there.py", "line\nend.py", 'quo"te.py', "back\\slash.py"),
    *("it's.py", "Größe.py", "deep/er/x.py", "esc\x1b[31m.py", "\udcff.py", "%41.py", "-x.py"),
    *(" blank.py", "trailing .py", "a b\tc.py"),
)
APPLY = {"git": ["git", "apply", "-"], "patch": ["patch", "-p1", "--binary", "--quiet"]}


def diff_of(folder: pathlib.Path, *names: str) -> bytes:
    # A file gets the exact bytes, as a pipe does.
    with (
        tempfile.TemporaryFile("w+") as answer,
        contextlib.redirect_stdout(answer),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.chdir(folder)
        assert cli.main(["lint", "--diff", *(names or (".",))]) == 1
        answer.flush()
        answer.seek(0)
        return bytes(answer.buffer.read())


def apply(tool: str, folder: pathlib.Path, diff: bytes) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool} here")
    done = subprocess.run(APPLY[tool], cwd=folder, input=diff, capture_output=True, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr, diff)


def wanted(path: str, content: bytes) -> bytes:
    result = fixed(path, content, Settings(), lint_causes()).content
    assert result != content, f"nothing is mended in {path}"
    return result


@pytest.mark.parametrize("tool", APPLY)
def test_every_content_survives(tmp_path: pathlib.Path, tool: str) -> None:
    files = {f"{number}.py": content for number, content in enumerate(CONTENTS.values())}
    files["book.ipynb"] = NOTEBOOK
    files["book-with-end.ipynb"] = NOTEBOOK + b"\n"
    files["book-with-mark.ipynb"] = b"\xef\xbb\xbf" + NOTEBOOK
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    apply(tool, tmp_path, diff_of(tmp_path))
    for name, content in files.items():
        assert (tmp_path / name).read_bytes() == wanted(name, content), name


@pytest.mark.parametrize("tool", APPLY)
def test_every_name_is_found(tmp_path: pathlib.Path, tool: str) -> None:
    # GNU patch refuses names with a line end since 2.8.
    names = [name for name in NAMES if tool != "patch" or "\n" not in name]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(DEFECT)
    apply(tool, tmp_path, diff_of(tmp_path))
    for name in names:
        assert (tmp_path / name).read_bytes() == wanted(name, DEFECT), name
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == len(names)


@pytest.mark.parametrize("tool", APPLY)
def test_paths_may_be_given_in_any_way(tmp_path: pathlib.Path, tool: str) -> None:
    here = tmp_path / "here"
    here.mkdir()
    for name in ("a.py", "b.py", "c.py"):
        (here / name).write_bytes(DEFECT)
    diff = diff_of(here, str(here / "a.py"), "../here/b.py", ".//c.py")
    apply(tool, here, diff)
    assert {path.read_bytes() for path in here.iterdir()} == {wanted("a.py", DEFECT)}


def test_a_file_outside_of_the_folder_is_named_from_the_root(tmp_path: pathlib.Path) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "there.py").write_bytes(DEFECT)
    diff = diff_of(tmp_path / "here", "../there.py")
    assert diff.startswith(b"--- a/" + os.fsencode(str(tmp_path).lstrip("/")) + b"/there.py\n")
    apply("patch", pathlib.Path("/"), diff)
    assert (tmp_path / "there.py").read_bytes() == wanted("there.py", DEFECT)


def test_git_applies_it_below_the_top_of_a_repository(tmp_path: pathlib.Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("there is no git here")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    below = tmp_path / "below"
    below.mkdir()
    (below / "a.py").write_bytes(DEFECT)
    apply("git", below, diff_of(below, "a.py"))
    assert (below / "a.py").read_bytes() == wanted("a.py", DEFECT)


def test_a_file_whose_bytes_would_change_elsewhere_is_left_alone() -> None:
    """In this encoding there are two ways to write an ASCII letter."""
    text = b"# -*- coding: iso2022_jp -*-\n# \x1b(J\x41\x1b(B\n" + DEFECT
    assert fixed("x.py", text, Settings(), lint_causes()).content == text
