"""What a PyTorch program was at when it died is noted, and estimated as if it were named."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

import whygpu
from tests.abilities import need
from tests.launch.programs import environment, run
from tests.targets import python_of

PROGRAM = pathlib.Path(__file__).with_name("noted_torch_cases.py")
SOURCE = pathlib.Path(whygpu.__path__[0])


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Any:
    need("torch", "bfloat16")
    folders = [SOURCE / "launch" / "bootstrap", SOURCE / "work" / "inside"]
    work = tmp_path_factory.mktemp("work")
    command: list[str | pathlib.Path] = [python_of("torch"), PROGRAM, *folders, work]
    done = run(command, env=environment(CUDA_VISIBLE_DEVICES="-1"))
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("in the forward pass", ("Net", "train", 6, "sgd", False)),
        ("without gradients", ("Net", "infer", 6, None, False)),
        ("by a decorator", ("Net", "infer", 6, None, False)),
        ("in the first layer", ("Sequential", "train", 6, None, False)),
        ("in half precision", ("Net", "train", 6, None, True)),
        ("in the backward pass", ("Net", "train", 6, "adamw", False)),
        ("in the loss", ("Net", "train", 6, "rmsprop", False)),
        ("made on the spot", ("Net", "train", 5, None, False)),
        ("made on the spot with a device", ("Net", "train", 5, None, False)),
        ("moved in the call", ("Linear", "train", 6, None, False)),
        ("beside the batch", ("Net", "train", 6, None, False)),
        ("with lengths", ("Words", "train", 6, None, False)),
    ],
)
def test_what_the_program_was_at(cases: Any, case: str, expected: tuple[Any, ...]) -> None:
    found = cases[case]
    assert found["why"] == ""
    names = ("name", "mode", "batch", "optimizer", "mixed")
    assert tuple(found[name] for name in names) == expected


@pytest.mark.parametrize(
    ("case", "why"),
    [
        ("of another round", "nothing shows which PyTorch module was called"),
        ("over GPUs", "DataParallel spreads the work"),
        ("with a lambda", "cannot be sent to another process"),
        ("with its data", "the module holds an array of 16 MiB"),
        ("batch second", "the batch is not the first axis"),
    ],
)
def test_why_it_cannot_be_told(cases: Any, case: str, why: str) -> None:
    assert why in cases[case]["why"]


def test_the_estimate_is_that_of_the_module_itself(cases: Any) -> None:
    compared = {name: case["peaks"] for name, case in cases.items() if "peaks" in case}
    assert len(compared) == 8
    for name, (noted, direct) in compared.items():
        # A mask that is held a little longer, in the smallest piece that PyTorch gives out.
        assert noted == pytest.approx(direct, abs=512), name
