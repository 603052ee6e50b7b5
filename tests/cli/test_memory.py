"""The verb memory: from words to text, JSON and exit codes; and the frame of its subverbs."""

from __future__ import annotations

import argparse
import json
import pathlib
import shlex
import types
from typing import Any

import pytest

from tests.kit import machine
from whygpu.cli import main as cli
from whygpu.cli import memory
from whygpu.render.check_json import render_snapshot

MACHINES = pathlib.Path(__file__).parent.parent / "machines"
HELD = str(MACHINES / "h200-memory-held.json")


@pytest.fixture
def saved(tmp_path: pathlib.Path) -> Any:
    def save(toml: str) -> str:
        path = tmp_path / "machine.json"
        path.write_text(render_snapshot(machine(toml)), encoding="utf-8")
        return str(path)

    return save


def test_a_recorded_machine(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["memory", "--snapshot", HELD]) == 0
    text = capsys.readouterr().out
    assert text.startswith("· GPU 0, NVIDIA H200: 3.39 GiB of 140 GiB are free\n")
    assert "   137 GiB    pid 2016, python3\n" in text
    assert "whygpu run --memory growth" in text
    assert max(map(len, text.splitlines())) <= 80


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["memory", "--json", "--snapshot", HELD]) == 0
    data = json.loads(capsys.readouterr().out)
    (gpu,) = data["gpus"]["known"]
    assert data["schema"] == 1
    assert gpu["free_bytes"]["known"] == 150754820096 - 147118161920
    assert [holder["pid"] for holder in gpu["holders"]] == [2016]


def test_a_machine_without_gpu_is_reported_as_such(
    saved: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["memory", "--snapshot", saved('start = "no-gpu"')]) == 0
    text = capsys.readouterr().out
    assert text.startswith("· No NVIDIA GPU is seen on this machine")
    assert "three quarters of the total memory" in text


def test_a_driver_that_does_not_answer_ends_with_4_and_the_cause(
    saved: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = (
        '[driver]\nstate = "hung"\ndetail = "NVML gave no answer within 10 seconds"\n'
        'gpus = {unknown = "NVML could not tell: NVML gave no answer within 10 seconds"}'
    )
    assert cli.main(["memory", "--snapshot", saved(toml)]) == 4
    text = " ".join(capsys.readouterr().out.split())
    assert "Cannot tell who holds GPU memory: NVML could not tell: NVML gave no answer" in text
    assert "driver-hung: " in text


TWO = """
[[driver.gpus]]
number = 0
[[driver.gpus]]
number = 1
name = "Tesla T4"
"""


@pytest.mark.parametrize(
    ("word", "shown"), [("1", [1]), ("gpu:0", [0]), ("T4", [1]), ("1,0", [0, 1])]
)
def test_one_gpu_of_several(
    saved: Any, capsys: pytest.CaptureFixture[str], word: str, shown: list[int]
) -> None:
    assert cli.main(["memory", "--gpu", word, "--json", "--snapshot", saved(TWO)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [gpu["number"] for gpu in data["gpus"]["known"]] == shown


@pytest.mark.parametrize("word", ["2", "Voodoo", "", "0,", "GPU-1a2b"])
def test_a_gpu_that_is_not_there_is_wrong_usage(
    saved: Any, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    assert cli.main(["memory", "--gpu", word, "--snapshot", saved(TWO)]) == 2
    assert f"--gpu {shlex.quote(word)}: " in capsys.readouterr().err


@pytest.mark.slow
def test_this_machine_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["memory", "--json"]) in (0, 4)
    assert json.loads(capsys.readouterr().out)["defaults"]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[argparse.Namespace]:
    """A subverb, made for the test, and what it was run with."""
    calls: list[argparse.Namespace] = []

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("what")
        parser.add_argument("--json", action="store_true")
        parser.add_argument("--color", default="auto")

    def run(options: argparse.Namespace) -> int:
        calls.append(options)
        return 7

    made = types.SimpleNamespace(
        __doc__="Made up.", EXAMPLES="", EXIT_CODES={}, add_arguments=add_arguments, run=run
    )
    monkeypatch.setitem(memory.SUBVERBS, "made-up", made)
    return calls


def test_a_subverb_has_its_own_options(ran: list[argparse.Namespace]) -> None:
    assert cli.main(["memory", "made-up", "model.keras", "--json"]) == 7
    assert (ran[0].what, ran[0].json, ran[0].color) == ("model.keras", True, "auto")
    assert cli.main(["memory", "--color", "never", "made-up", "x"]) == 7
    assert (ran[1].json, ran[1].color) == (False, "never")


@pytest.mark.parametrize("words", [["--json"], ["--gpu", "1"], ["--snapshot", HELD]])
def test_an_option_before_a_subverb_is_not_lost_without_a_word(
    ran: list[argparse.Namespace], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["memory", *words, "made-up", "x"]) == 2
    assert f"{words[0]} belongs to `whygpu memory` alone" in capsys.readouterr().err
    assert ran == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["dance"], "expected whygpu memory estimate or find"),
        (["estimat", "x.keras"], "did you mean `whygpu memory estimate`?"),
        (["x.keras"], "  whygpu memory estimate x.keras --batch 32 "),
        (["--gpu", "1", "train.py:build"], "  whygpu memory find train.py:build "),
        (["train.py"], "  whygpu memory estimate train.py:FUNCTION --batch 32 "),
    ],
)
def test_no_such_subverb(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["memory", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("8", "--limit 8: expected a unit, such as 8GiB"),
        ("0", "--limit 0: expected an amount such as 8GiB\n"),
        ("8XB", "--limit 8XB: expected an amount such as 8GiB\n"),
        ("growth", "--limit growth: expected an amount such as 8GiB\n"),
        ("80%", "--limit 80%: expected an amount such as 8GiB\n"),
    ],
)
@pytest.mark.parametrize("subverb", ["estimate", "find"])
def test_a_limit_is_an_amount(
    subverb: str, limit: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["memory", subverb, f"{__file__}:test_json", "--limit", limit]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("name", memory.SUBVERBS)
def test_every_subverb_has_help_with_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["memory", name, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"  whygpu memory {name}" in text
    assert max(map(len, text.splitlines())) <= 80
