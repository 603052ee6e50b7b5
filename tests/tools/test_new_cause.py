"""`make new-cause`: what it writes is a cause of this project, but for what has to be filled in."""

from __future__ import annotations

import itertools
import pathlib
import subprocess
import sys

import pytest

from tests.cases import each
from tools import new_cause
from tools.new_cause import PARTS, places_of, skeleton

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
@each(
    "places",
    [places for n in (1, 2, 3) for places in itertools.combinations(PARTS, n)],
)
def test_every_skeleton_keeps_the_style_and_imports_what_it_uses(places: tuple[str, ...]) -> None:
    text = skeleton("WG999", places)
    for words in (("check",), ("format", "--check")):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *words, "--stdin-filename", "src/whygpu/x.py", "-"],
            input=text,
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    for place, part in PARTS.items():
        assert (part.detector in text) == (part.examples in text) == (place in places)


def test_a_family_that_no_machine_shows_gets_no_machine_detector() -> None:
    assert places_of("devices", "") == ["machine", "log", "code"]
    assert places_of("programs", "") == ["log", "code"]
    assert places_of("devices", "log") == ["log"]
    with pytest.raises(SystemExit, match="the family noise is not loaded for a machine"):
        places_of("noise", "machine log")


@each(
    ("words", "said"),
    [
        (("", ""), "there is no family ''; choose among driver, "),
        (("program", "a-b"), "there is no family 'program'; choose among driver, "),
        (("devices", "No Kernel"), "'No Kernel' is no name of a cause"),
        (("devices", ""), "'' is no name of a cause"),
        (("devices", "a-b", "logs"), "SEEN_IN has no 'logs'; choose among machine, log, code"),
        (("devices", "gpu-unused"), "exists already"),
    ],
)
def test_a_mistake_in_the_words_is_named(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        new_cause.main(*words)
    assert said in str(stopped.value)
