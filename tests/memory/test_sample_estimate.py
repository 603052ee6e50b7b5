"""The estimate beside the first trial of a search: when it begins, what it gives, how it ends."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests.cases import each
from tests.memory.test_estimator import GIB, WHAT, estimate
from tests.patience import PATIENCE
from whygpu.memory.estimator import Wanted, judge
from whygpu.memory.gpu_rooms import of_limit
from whygpu.memory.sample_estimate import SampleEstimate, of_a_sample
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import LargestMessage, ProgramMessage, TaskMessage
from whygpu.model.work import What

SLOW = f"import time\ndef model():\n    time.sleep({PATIENCE})\n"


def program(*frameworks: str) -> ProgramMessage:
    return ProgramMessage(dict.fromkeys(frameworks, "1.0"), ())


def wanted(folder: Path, source: str) -> Wanted:
    file = folder / "steps.py"
    file.write_text(source)
    return Wanted("model", What("function", str(file), "model"), 8, room=of_limit(GIB), beside=0)


@each(
    ("messages", "size"),
    [
        ((estimate(8, 2 * GIB), estimate(24, 4 * GIB), LargestMessage(24, 25)), GIB / 8),
        # Nothing larger than what was asked for fits.
        ((estimate(8, 2 * GIB), LargestMessage(8, 9)), None),
        # It takes the same for any batch.
        ((estimate(8, 2 * GIB), estimate(24, 2 * GIB), LargestMessage(24, 25)), None),
        ((), None),
    ],
)
def test_a_sample_takes_what_the_largest_batch_takes_more_than_the_first(
    messages: tuple[TaskMessage, ...], size: float | None
) -> None:
    asked = Wanted("model", WHAT, 8, room=of_limit(4 * GIB), beside=0)
    assert of_a_sample(judge(asked, TaskEnd("finished", "", messages=messages))) == size


@each(
    ("frameworks", "begins"),
    [(("jax",), True), (("keras", "tensorflow"), True), (("torch",), False), ((), False)],
)
def test_it_begins_if_the_framework_compiles_each_batch(
    frameworks: tuple[str, ...], begins: bool, tmp_path: Path
) -> None:
    with SampleEstimate(wanted(tmp_path, SLOW), sys.executable, os.environ) as sample:
        sample.begin(program(*frameworks))
        assert sample.is_running is begins


def test_it_ends_with_the_search(tmp_path: Path) -> None:
    with SampleEstimate(wanted(tmp_path, SLOW), sys.executable, os.environ) as sample:
        sample.begin(program("jax"))
        began = time.monotonic()
    assert time.monotonic() - began < PATIENCE / 2
    assert not sample.is_running


@pytest.mark.slow
@pytest.mark.parametrize("source", ["def model(): return 3\n", "raise SystemExit(3)\n"])
def test_what_cannot_be_estimated_is_left_alone(source: str, tmp_path: Path) -> None:
    with SampleEstimate(wanted(tmp_path, source), sys.executable, os.environ) as sample:
        sample.begin(program("jax"))
        until = time.monotonic() + PATIENCE
        while sample.is_running and time.monotonic() < until:
            time.sleep(0.05)
    assert sample.bytes is None


def test_nothing_is_estimated_if_there_is_nothing_to_name() -> None:
    with SampleEstimate(None, sys.executable, os.environ) as sample:
        sample.begin(program("jax"))
        assert not sample.is_running
