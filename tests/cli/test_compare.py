"""The verb compare: mistakes in its words. What it does is seen in tests/real/test_compare.py."""

from __future__ import annotations

import pathlib

import pytest

import whygpu
from whygpu.cli.main import main

SCRIPT = "import whygpu\nwhygpu.record('x', 1)\n"


@pytest.fixture
def script(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work.py").write_text(SCRIPT)
    return "work.py"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no.py"], "no.py does not exist"),
        (["work.py:f"], "it defines no function"),
        (["work.py", "--lanes", "cpu,tpu"], "no lane 'tpu'"),
        (["work.py", "--tolerance", "small"], "--tolerance small: expected auto"),
        (["work.py", "--batch", "0"], "--batch 0: expected 1 or more"),
        (["work.py", "--repeat", "-1"], "--repeat -1: expected 1 or more"),
        (["work.py", "--train", "-1"], "--train -1: expected a number of steps"),
        (["work.py", "--inputs", "no.npz"], "--inputs no.npz: there is no such file"),
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


def test_recording_outside_a_comparison_does_nothing() -> None:
    assert whygpu.record("anything", object()) is None  # type: ignore[func-returns-value]


def test_the_function_is_not_hidden_by_the_package() -> None:
    import whygpu.comparer.run

    assert whygpu.compare is whygpu.comparer.run.compare
