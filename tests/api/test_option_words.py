"""An error names options as the side that made the mistake writes them."""

from __future__ import annotations

import pathlib
import pickle
from collections.abc import Callable

import pytest

import whygpu
from tests.cases import each
from whygpu.cli import main as cli
from whygpu.errors import Option, PolicyError, UsageError

MODEL = "work.py:make"


@pytest.fixture(autouse=True)
def work(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work.py").write_text("def make():\n    pass\n")
    monkeypatch.chdir(tmp_path)


SIDES: list[tuple[list[str], Callable[[], object], str, str]] = [
    (
        ["memory", "estimate", MODEL, "--batch", "0"],
        lambda: whygpu.estimate_memory(MODEL, batch_size=0),
        "--batch 0: expected 1 or more",
        "batch_size=0: expected 1 or more",
    ),
    (
        ["memory", "estimate", MODEL, "--limit", "growth"],
        lambda: whygpu.estimate_memory(MODEL, limit="growth"),
        "--limit growth: expected an amount such as 8GiB",
        "limit='growth': expected an amount such as 8GiB",
    ),
    (
        ["memory", "estimate", MODEL, "--gpu", "Voodoo 2"],
        lambda: whygpu.estimate_memory(MODEL, gpu="Voodoo 2"),
        "--gpu 'Voodoo 2': whygpu does not know how much memory it has; give a limit, such as "
        "--limit 24GiB",
        "gpu='Voodoo 2': whygpu does not know how much memory it has; give a limit, such as "
        "limit='24GiB'",
    ),
    (
        ["memory", "estimate", MODEL, "--infer", "--optimizer", "sgd", "--limit", "8GiB"],
        lambda: whygpu.estimate_memory(MODEL, train=False, optimizer="sgd", limit="8GiB"),
        "--optimizer sgd: inference has no optimizer; omit it, or use --train",
        "optimizer='sgd': inference has no optimizer; omit it, or use train=True",
    ),
    (
        ["memory", "find", MODEL, "--max", "4", "--multiple-of", "8"],
        lambda: whygpu.find_batch_size(MODEL, largest=4, multiple_of=8),
        "--max 4: no multiple of 8 is that small; expected 8 or more",
        "largest=4: no multiple of 8 is that small; expected 8 or more",
    ),
    (
        ["memory", "find", MODEL, "--margin", "all"],
        lambda: whygpu.find_batch_size(MODEL, margin="all"),
        "--margin all: expected a part of the memory",
        "margin='all': expected a part of the memory",
    ),
    (
        ["compare", "work.py", "--input", "3x8"],
        lambda: whygpu.compare("work.py", shapes="3x8"),
        "--input 3x8: it is for models and functions",
        "shapes='3x8': it is for models and functions",
    ),
    (
        ["plan", "--gpu", "Voodoo 2"],
        lambda: whygpu.plan(gpu="Voodoo 2"),
        "--gpu 'Voodoo 2': no such model on record; give its compute capability instead, such as "
        "--gpu 8.6",
        "gpu='Voodoo 2': no such model on record; give its compute capability instead, such as "
        "gpu='8.6'",
    ),
    (
        ["lint", "work.py", "--select", "WG999"],
        lambda: whygpu.lint("work.py", select="WG999"),
        "--select WG999: 'WG999' is not a cause that lint checks",
        "select='WG999': 'WG999' is not a cause that lint checks",
    ),
    (
        ["run", "--memory", "80 apples", "--", "true"],
        lambda: whygpu.run("true", "gpu memory=apples"),
        "--memory '80 apples': expected growth, an amount such as 4GiB, or 80%",
        "memory='apples': expected growth, an amount such as 4GiB, or 80%",
    ),
]


@pytest.mark.slow
@each(("words", "call", "typed", "argument"), SIDES)
def test_each_side_reads_its_own_words(
    words: list[str],
    call: Callable[[], object],
    typed: str,
    argument: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(words) == (125 if words[0] == "run" else 2)
    assert capsys.readouterr().err.startswith(f"whygpu: {typed}")
    with pytest.raises(UsageError) as caught:
        call()
    assert str(caught.value).startswith(argument)
    assert "--" not in str(caught.value)


def test_a_policy_that_contradicts_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--device", "cpu", "--require", "gpu", "--", "true"]) == 126
    assert "--device cpu and --require gpu ask for opposite things" in capsys.readouterr().err
    with pytest.raises(PolicyError, match="device='cpu' and require_gpu=True ask for opposite"):
        whygpu.run("true", "cpu require=gpu")


def test_an_error_survives_being_sent_to_another_process() -> None:
    error = UsageError("give ", Option("limit", "8GiB"), option="gpu", value="Voodoo")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
