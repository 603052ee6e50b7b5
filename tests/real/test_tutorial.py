"""The tutorial in docs/contributing.md works: it is followed in a copy of the source tree."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from tools.new_cause import PARTS, skeleton

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "contributing.md").read_text(encoding="utf-8")
TUTORIAL = PAGE[PAGE.index("## Adding a cause, step by step") :]
COPIED = ("src", "tests", "tools", "docs", "pyproject.toml")

(FAMILY, SLUG) = re.findall(r"(?m)^make new-cause FAMILY=(\S+) SLUG=(\S+)$", TUTORIAL)[0]
(FILE,) = re.findall(r"`(src/whygpu/causes/\S+\.py)`", TUTORIAL)
TOOLS_OF_MAKE_DOCS = re.findall(
    r"-m (\S+)", (ROOT / "Makefile").read_text().partition("\ndocs:")[2].partition("\n\n")[0]
)
BLOCKS = re.findall(r"(?ms)^~~~python\n(.*?)^~~~$", TUTORIAL)


class Copy:
    """A source tree of its own, in which commands use its own whygpu."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        # Compiled files are copied too: to compile everything again takes longer than the test.
        for name in COPIED:
            whole = (ROOT / name).is_dir()
            (shutil.copytree if whole else shutil.copy2)(ROOT / name, folder / name)

    def run(self, *words: str) -> str:
        paths = os.pathsep.join(map(str, (self.folder / "src", self.folder)))
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def tree(tmp_path: pathlib.Path) -> Copy:
    return Copy(tmp_path)


def test_following_the_tutorial_gives_a_cause_that_keeps_all_rules(tree: Copy) -> None:
    told = tree.run("tools.new_cause", FAMILY, SLUG)
    code = told.partition(":")[0]
    path = tree.folder / FILE
    assert f'cause("{code}"' in path.read_text(), "the skeleton is where the page says"
    path.write_text(
        "\n\n".join(block.strip("\n") for block in BLOCKS).replace("WG4xx", code) + "\n"
    )
    for tool in TOOLS_OF_MAKE_DOCS:
        tree.run(tool)
    assert f"{code} {SLUG}\n" in (tree.folder / "docs" / "causes" / "ledger.txt").read_text()
    tree.run("ruff", "check", FILE)
    tested = ("tests/test_catalogue.py", "tests/test_mutation.py")
    # Each of these is about every cause, the new one included.
    report = tree.run("pytest", "-q", "-p", "no:cacheprovider", "-rA", *tested)
    assert "::test_the_examples_on_its_page_do_what_they_say" in report
    assert "::test_a_broken_detector_is_noticed" in report
    assert "::test_a_broken_code_detector_is_noticed" in report
    assert "FAILED" not in report


def test_the_tutorial_is_about_a_cause_that_does_not_exist() -> None:
    assert not (ROOT / FILE).exists(), "choose another example for the tutorial"


def test_every_name_of_the_skeleton_is_one_that_the_tutorial_uses() -> None:
    """So that a reader finds each part of the skeleton on the page."""
    whole = skeleton("WG999", list(PARTS))
    decorators = re.findall(r"(?m)^@CAUSE\.(\w+)", whole)
    assert decorators == ["on_machine", "on_log", "on_code"]
    assert re.findall(r"(?m)^@CAUSE\.(\w+)", TUTORIAL) == decorators
    headings = re.findall(r"(?m)^## (?:Fires|Quiet|Cannot tell) on.*$", whole)
    assert set(re.findall(r"(?m)^## (?:Fires|Quiet|Cannot tell) on.*$", TUTORIAL)) == set(headings)
