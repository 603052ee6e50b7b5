"""Every command that the documentation shows works, and prints what the page says."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
from pathlib import Path

import pytest

from tools.docs_commands import ROOT, Block, blocks, inline_commands, pages, run, shown, usage_error

PAGES = pages()
MAKE_TARGETS = frozenset(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
UNFINISHED = "the following arguments are required"
"""A sentence may name a verb without the words that belong to it."""

runs = pytest.mark.skipif(os.name != "posix", reason="the commands are for a POSIX shell")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@runs
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_run_and_print_what_the_page_shows(page: Path) -> None:
    for block in blocks(page):
        if block.kind != "not run":
            outputs = run(block)
            if block.shows_output:
                assert shown(block, outputs) == block.body, f"{block.place}: run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_output_is_run_or_has_a_reason_why_not(page: Path) -> None:
    for block in blocks(page):
        assert block.kind == "run" or not block.shows_output or block.note.strip(), block.place
        assert block.kind != "not run" or block.note.strip(), block.place


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_that_are_not_run_exist(page: Path) -> None:
    for block in blocks(page):
        for command in block.commands:
            assert problem(command) == "", f"{block.place}: {command}"


def problem(command: str) -> str:
    words = shlex.split(command)
    if words[0] == "make" and words[1] not in MAKE_TARGETS:
        return f"the Makefile has no target {words[1]}"
    if words[:2] == ["python", "-m"] and importlib.util.find_spec(words[2]) is None:
        return f"there is no module {words[2]}"
    return usage_error(command)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_in_sentences_have_options_that_exist(page: Path) -> None:
    for command in inline_commands(page):
        error = usage_error(command)
        assert error == "" or UNFINISHED in error, f"{name(page)}: {command}\n{error}"


def test_a_wrong_option_is_noticed() -> None:
    assert "--colour" in usage_error("FOO=1 whygpu check --colour > out")
    assert usage_error("python train.py 2>&1 | whygpu explain --here") == ""
    assert problem("make no-such-target") != ""


@runs
def test_stale_output_is_noticed(tmp_path: Path) -> None:
    block = Block(ROOT / "README.md", 1, "run", "first 1 lines", "$ whygpu --version\nold\n")
    assert block.commands == ("whygpu --version",)
    assert shown(block, run(block)).startswith("$ whygpu --version\nwhygpu ")
