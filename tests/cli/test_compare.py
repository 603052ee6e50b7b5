"""The verb compare: mistakes in its words. What it does is seen in tests/real/test_compare.py."""

from __future__ import annotations

import pathlib
import sys

import pytest

import whygpu
from whygpu.cli.main import main

SCRIPT = "import whygpu\nwhygpu.record('x', 1)\n"


@pytest.fixture
def script(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work.py").write_text(SCRIPT)
    (tmp_path / "made.py").write_text("def f(): ...\n")
    return "work.py"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no.py"], "no.py does not exist"),
        (["work.py:f"], "it defines no function"),
        (["work.py", "--lanes", "cpu,tpu"], "no lane 'tpu'"),
        (["work.py", "--tolerance", "small"], "--tolerance small: expected auto"),
        (["made.py:f", "--batch", "0"], "--batch 0: expected 1 or more"),
        (
            ["work.py", "--batch", "8"],
            "--batch 8: it is for models and functions; work.py as a script",
        ),
        (["work.py", "--input", "3x8"], "--input 3x8: it is for models and functions"),
        (["work.py", "--inputs", "x.npz"], "expected work.py:function"),
        (["work.py", "--repeat", "-1"], "--repeat -1: expected 1 or more"),
        (["work.py", "--train", "-1"], "--train -1: expected a number of steps"),
        (["made.py:f", "--inputs", "no.npz"], "--inputs no.npz: there is no such file"),
        (["made.py:f", "--inputs", "work.py"], 'make one with numpy.savez("inputs.npz", array)'),
        (["work.py", "--lanes", "cpu gpu"], "expected commas between lanes: cpu,gpu"),
        (["work.py", "--lanes", "cpu;gpu"], "expected commas between lanes: cpu,gpu"),
        (["work.py", "--lanes", "tf,jax"], "did you mean keras:tensorflow?"),
        (["work.py", "--lanes", "gpu:1"], "CUDA_VISIBLE_DEVICES=1 chooses a GPU"),
        (["work.py", "--random", "-1"], "--random -1: expected a seed from 0"),
        (["work.py", "--timeout", "0"], "--timeout 0: expected more than 0 seconds"),
        (["work.py", "--html", "no/where.html"], "--html no/where.html: there is no folder"),
        (["work.py", "--python", "/no/python"], "/no/python"),
    ],
)
def test_a_mistake_is_told_before_anything_runs(
    words: list[str], message: str, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *words]) == 2
    assert message in capsys.readouterr().err


def test_inputs_are_given_or_made_up(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["compare", script, "--inputs", "x.npz", "--random", "3"])
    assert end.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--repeat", "many"], "argument --repeat: 'many': expected a whole number"),
        (["--train", "1.5"], "argument --train: '1.5': expected a whole number"),
        (["--timeout", "soon"], "argument --timeout: 'soon': expected a number of seconds"),
    ],
)
def test_a_word_where_a_number_belongs(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["compare", "work.py", *words])
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_what_a_program_says_is_no_command_to_the_terminal(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work.py").write_text(r"raise SystemError('\x1b]0;owned\x07')")
    words = ["work.py", "--lanes", "cpu", "--python", sys.executable, "--html", "report.html"]
    assert main(["compare", *words]) == 4
    streams = capsys.readouterr()
    assert "owned" in streams.out
    assert "\x1b" not in streams.out + (tmp_path / "report.html").read_text()
    assert "fix the program or its inputs first" in " ".join(streams.out.split())
    assert f"whygpu: wrote {tmp_path / 'report.html'}\n" in streams.err


def test_recording_outside_a_comparison_does_nothing() -> None:
    assert whygpu.record("anything", object()) is None  # type: ignore[func-returns-value]


def test_the_function_is_not_hidden_by_the_package() -> None:
    import whygpu.api.comparison

    assert whygpu.compare is whygpu.api.comparison.compare
