"""The page of a fix: what was proven, what was done, and what is left for a person."""

from __future__ import annotations

from pathlib import Path

from tests.fixing.small import environment, installs, judge
from tests.schemas import obeys
from whygpu.model.finding import Remedy
from whygpu.model.fix import Applied, Attempt, CopyFacts, FixAnswer, FixStep, Undone
from whygpu.model.remedy import command_line
from whygpu.render.fix_json import as_dict
from whygpu.render.fix_text import render, render_undone

COPY = CopyFacts(1200, 3 << 30, 200 << 20, 50 << 30, 2.0)
STEP = FixStep("WG900", "a", "torch", installs("a")[0])
ROOT = FixStep("WG901", "b", "torch", Remedy("Or load it.", command_line("sudo modprobe nvidia")))


def answer(tmp_path: Path, *left: str) -> FixAnswer:
    broken = str(environment(tmp_path / "broken", "a", *left))
    mended = str(environment(tmp_path / "mended", *left))
    return FixAnswer(
        broken, judge(broken, {}, {}), (STEP,), (), "", COPY, (), judge(mended, {}, {})
    )


def page(shown: FixAnswer) -> str:
    obeys("fix", as_dict(shown))
    return " ".join(render(shown, width=100, color=False).split())


def test_a_fix_that_is_proven(tmp_path: Path) -> None:
    text = page(answer(tmp_path))
    assert text.startswith("✗ PyTorch: cpu")
    assert "before 2.0 cpu" in text
    assert "after 2.0 gpu" in text
    assert "What fixes it, proven in a copy of the environment: 1. WG900 a, PyTorch" in text
    assert "broken/bin/python -m pip install a" in text
    assert "Nothing was changed. To apply it: whygpu fix --apply" in text
    assert "1,200 files (3 GiB), of which 200 MiB took space" in text


def test_the_next_command_is_in_one_line(tmp_path: Path) -> None:
    shown = answer(tmp_path)._replace(options=("--python", "/a folder/with 'quotes'/" + "x" * 60))
    lines = render(shown, width=60, color=False).splitlines()
    assert lines[-2:] == [
        "Nothing was changed. To apply it:",
        """    whygpu fix --python '/a folder/with '"'"'quotes'"'"'/""" + "x" * 60 + "' --apply",
    ]


def test_a_fix_that_leaves_something_says_so(tmp_path: Path) -> None:
    shown = answer(tmp_path, "b")._replace(by_hand=(ROOT._replace(by_hand="it needs root"),))
    text = page(shown)
    assert "What removes a part of it" in text
    assert "This would not fix everything: PyTorch: cpu." in text
    assert "For a person: 1. WG901 b, PyTorch: Load it. sudo modprobe nvidia" in text
    assert "By hand, because it needs root." in text
    applied = page(shown._replace(applied=Applied("/saved")))
    assert applied.startswith("✗ Partly fixed: PyTorch: cpu")


def test_a_fix_that_was_applied(tmp_path: Path) -> None:
    text = page(answer(tmp_path)._replace(applied=Applied("/saved", "bin/activate")))
    assert text.startswith("✓ Fixed: PyTorch: gpu")
    assert "What was done" in text
    assert "The environment as it was is in /saved" in text
    assert "broken/bin/activate: activate the environment again" in text


def test_what_was_tried_in_vain_is_listed_with_its_error(tmp_path: Path) -> None:
    failed = Attempt(STEP, "failed", "ERROR: no matching distribution", 3.0)
    shown = answer(tmp_path)
    shown = shown._replace(steps=(), attempts=(failed,), after=shown.before)
    text = page(shown)
    assert "WG900: fails: ERROR: no matching distribution (3 s)" in text
    assert "no remedy that whygpu can carry out helps here" in text


def test_the_next_command_is_for_the_same_environment(tmp_path: Path) -> None:
    shown = answer(tmp_path)._replace(options=("--python", "/my env", "--only", "WG203"))
    assert "whygpu fix --python '/my env' --only WG203 --apply" in page(shown)


def test_what_could_not_be_tried_leaves_the_question_open(tmp_path: Path) -> None:
    prevented = Attempt(STEP, "prevented", "the package index cannot be reached", 3.0)
    shown = answer(tmp_path)
    shown = shown._replace(steps=(), attempts=(prevented,), after=shown.before)
    assert "not every remedy could be proven here" in page(shown)
    assert shown.exit_code == 4


def test_a_refusal_gives_its_reason(tmp_path: Path) -> None:
    shown = answer(tmp_path)._replace(after=None, copy=None, refused="it is no environment")
    text = page(shown)
    assert text.startswith("? ")
    assert "Nothing was tried: it is no environment." in text
    assert "What would be tried; not proven" in text
    assert shown.exit_code == 4


def test_steps_that_were_not_proven_are_called_so(tmp_path: Path) -> None:
    shown = answer(tmp_path)._replace(after=None, copy=None)
    assert "To prove it in a copy: whygpu fix" in page(shown)
    assert shown.exit_code == 1
    assert repr(shown) == "<FixAnswer: PyTorch: cpu; 1 step, not proven>"


def test_nothing_to_fix_is_said_once(tmp_path: Path) -> None:
    healthy = judge(str(environment(tmp_path / "env")), {}, {})
    shown = FixAnswer("/env", healthy, (), ())
    assert page(shown).startswith("✓ Nothing to fix: PyTorch: gpu")
    idle = healthy._replace(headline="this machine has no GPU; nothing to fix")
    assert page(shown._replace(before=idle)).startswith("✓ This machine has no GPU; nothing to fix")


def test_an_undo_says_what_it_took_back() -> None:
    text = render_undone(Undone("/env", ("WG900: pip install a",), "2026-11-16", ("numpy",)))
    assert text.splitlines() == [
        "/env is again as it was before the fix of 2026-11-16.",
        "  taken back: WG900: pip install a",
        "  lost with it: numpy",
    ]
