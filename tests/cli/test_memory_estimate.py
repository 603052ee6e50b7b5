"""`whygpu memory estimate` from words to exit codes, with a plain Python as the target."""

from __future__ import annotations

import json
import pathlib
import sys

import pytest

import whygpu
from whygpu.cli import main as cli

PROGRAM = """
def nothing():
    return 3

def breaks():
    raise KeyError("unheard of")

def shouts():
    raise KeyError("\\x1b]0;owned\\x07 and half of a letter: \\udc80")

def needs():
    import no_such_framework

def broken_inside():
    import json
    json.loads("{")

def wants(width, height):
    return None
"""


@pytest.fixture
def program(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def estimate(*words: str) -> int:
    return cli.main(["memory", "estimate", *words, "--python", sys.executable])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("program.py:nothing", "--limit", "1GiB"), "int is not a model: expected a Keras model"),
        (("program.py:wants", "--limit", "1GiB"), "wants needs the arguments width, height"),
        (("program.py:absent",), "program.py has no 'absent'"),
        (("program.py",), "which function of it? expected program.py:function"),
        (("model.keras",), "model.keras does not exist"),
        (("absent.py",), "absent.py does not exist"),
        (("program.py:nothing", "--gpu", "Voodoo"), "--gpu Voodoo: whygpu does not know"),
        (("program.py:nothing", "--limit", "some"), "--limit some: expected"),
        (("program.py:nothing", "--limit", "1GiB", "--batch", "-3"), "--batch -3: expected 1"),
    ],
)
def test_wrong_usage_says_what_to_do(
    words: tuple[str, ...],
    expected: str,
    program: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert estimate(*words) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert expected in streams.err


def test_what_the_program_raises_is_shown_and_cannot_be_told(
    program: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert estimate("program.py:breaks", "--limit", "1GiB") == 4
    shown = capsys.readouterr().out
    headline = "? Cannot tell how much memory program.py:breaks needs: KeyError: 'unheard of'\n"
    assert shown.startswith(headline)
    assert 'raise KeyError("unheard of")' in shown


def test_what_is_not_installed_says_where_it_would_have_to_be(
    program: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert estimate("program.py:needs", "--limit", "1GiB") == 4
    shown = " ".join(capsys.readouterr().out.split())
    assert "install no_such_framework in the environment that was used, or name another" in shown


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_what_a_program_says_is_no_command_to_the_terminal(
    program: pathlib.Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert estimate("program.py:shouts", "--limit", "1GiB", *words) == 4
    shown = capsys.readouterr().out
    assert "owned" in shown
    assert "\x1b" not in shown
    assert "\\u001b" not in shown


def test_only_the_frames_of_the_program_are_shown(
    program: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert estimate("program.py:broken_inside", "--limit", "1GiB") == 4
    shown = capsys.readouterr().out
    assert 'json.loads("{")' in shown
    assert "decoder.py" not in shown
    assert "whygpu_work" not in shown


def test_a_word_where_a_number_belongs(
    program: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        estimate("program.py:nothing", "--batch", "1e3")
    assert stop.value.code == 2
    assert "argument --batch: '1e3': expected a whole number" in capsys.readouterr().err


def test_json_of_what_cannot_be_told(
    program: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert estimate("program.py:breaks", "--limit", "1GiB", "--json") == 4
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["verdict"], data["at"], data["total_bytes"]) == (
        1,
        "unknown",
        None,
        None,
    )


def test_two_rooms_are_one_too_many(program: pathlib.Path) -> None:
    with pytest.raises(SystemExit) as stop:
        estimate("program.py:nothing", "--limit", "1GiB", "--gpu", "T4")
    assert stop.value.code == 2


def test_from_a_program(program: pathlib.Path) -> None:
    found = whygpu.estimate_memory("program.py:breaks", limit=1 << 30, python=sys.executable)
    assert found.verdict == "unknown"
    assert found.why == "KeyError: 'unheard of'"
