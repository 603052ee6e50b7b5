"""Trainings that run out of memory for real: they die without the guard, and go on with it."""

from __future__ import annotations

import itertools
import json
import pathlib
import subprocess
from typing import Any

import pytest

import whygpu
from tests.launch.programs import environment
from tests.patience import PATIENCE
from tests.targets import python_of

PROGRAM = pathlib.Path(__file__).with_name("guard_program.py")
SOURCE = pathlib.Path(whygpu.__path__[0]).parent
FLOAT32_EPSILON = 2.0**-23

FRAMEWORKS = {
    "torch": ("torch", "torch", ""),
    "jax": ("jax", "jax", ""),
    "keras-torch": ("torch", "keras", "torch"),
    "keras-jax": ("jax", "keras", "jax"),
    "keras-tensorflow": ("tensorflow-2.21", "keras", "tensorflow"),
}
FULL = ("keras-jax", "keras-torch")
"""Of these both parts are in other cases: Keras, and what its backend does without memory."""


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.full) if name in FULL else name for name in FRAMEWORKS
    ],
)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    target, framework, backend = FRAMEWORKS[request.param]
    environ = environment(
        PYTHONPATH=str(SOURCE),
        HOME=str(tmp_path_factory.mktemp("home")),
        OMP_NUM_THREADS="1",
        # With oneDNN TensorFlow waits ten seconds before it says that there is no memory.
        TF_ENABLE_ONEDNN_OPTS="0",
        **({"KERAS_BACKEND": backend} if backend else {}),
    )
    command = [python_of(target), str(PROGRAM), framework]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]
    return {**json.loads(done.stdout.splitlines()[-1]), "stderr": done.stderr}


def difference(one: list[float], other: list[float]) -> float:
    gaps: list[float] = [abs(a - b) for a, b in zip(one, other, strict=True)]
    return max(gaps)


def tolerance(told: Any, what: str) -> float:
    """How far apart two runs of this very training may be because of rounding, and no farther.

    The same training with the samples of each batch in other orders differs from the reference by
    rounding alone. Two runs may stray like that to opposite sides, and each of them rounds what it
    stores once per step.
    """
    runs = [told["reference"][what], *(run[what] for run in told["reordered"])]
    strayed = max(difference(a, b) for a, b in itertools.combinations(runs, 2))
    largest: float = max(abs(value) for value in runs[0])
    steps = len(told["reference"]["losses"])
    return 2 * strayed + steps * FLOAT32_EPSILON * largest


def test_without_the_guard_the_training_dies(told: Any) -> None:
    assert told["bare"].endswith(", out of memory")


@pytest.mark.parametrize("what", ["losses", "weights"])
def test_with_the_guard_it_is_the_same_training(told: Any, what: str) -> None:
    allowed = tolerance(told, what)
    assert difference(told["guarded"][what], told["reference"][what]) <= allowed


def test_the_tolerance_tells_smaller_batches_from_micro_batches(told: Any) -> None:
    gap = difference(told["smaller"]["weights"], told["reference"]["weights"])
    assert gap > 20 * tolerance(told, "weights")


def test_evaluation_has_the_same_result_in_parts(told: Any) -> None:
    if not told["reference"]["evaluated"]:
        pytest.skip("a loop of one's own evaluates in its own way")
    cut = [cut for cut in told["guarded"]["report"]["cuts"] if cut[1] == "evaluation"]
    assert [samples for _, _, samples, *_ in cut] == [told["setting"]["samples"]]
    gap = difference(told["guarded"]["evaluated"], told["reference"]["evaluated"])
    assert gap <= tolerance(told, "evaluated")


def test_no_sample_is_skipped_or_seen_twice(told: Any) -> None:
    guarded, setting = told["guarded"], told["setting"]
    assert guarded["drawn"] == told["reference"]["drawn"]
    in_last = setting["samples"] % setting["batch"]
    batches = [setting["batch"]] * (setting["samples"] - in_last) + [in_last] * in_last
    expected = [-setting["epochs"] * setting["rate"] / batch for batch in batches]
    # A sum of as many terms as epochs, each rounded when it is made and when it is added.
    allowed = 2 * setting["epochs"] * FLOAT32_EPSILON * max(abs(value) for value in expected)
    assert difference(guarded["ledger"], expected) <= allowed


def test_what_was_done_is_reported(told: Any) -> None:
    report = told["guarded"]["report"]
    step, of, samples, parts, largest, asked, said = report["cuts"][0]
    assert (of, samples) == ("training", told["setting"]["batch"])
    assert parts * largest >= samples
    assert asked > 1 << 24
    assert said
    assert 0 < report["steps_in_parts"] <= report["steps"] == len(told["guarded"]["losses"])
    assert report["differences"] == []
    assert f"whygpu: training step {step}: out of memory with {samples} samples" in told["stderr"]


LARGE_WEIGHTS = """
import resource, torch, whygpu
torch.set_num_threads(1)
first, last = torch.nn.Linear(4096, 4096), torch.nn.Linear(4096, 10)
ramp = torch.linspace(0.5, 1.5, 128)

def loss_of(x, y):
    wide = torch.tanh(torch.tanh(first(x))[:, :, None] * ramp)
    return torch.nn.functional.cross_entropy(last(wide.mean(2)), y)

x, y = torch.randn(128, 4096), torch.randint(0, 10, (128,))
guard = whygpu.oom_guard(first, last)
torch.randn(8, 4096) @ first.weight.detach()
with open("/proc/self/status") as status:
    held = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData:"))
resource.setrlimit(resource.RLIMIT_DATA, (held + (240 << 20),) * 2)
guard.backward(loss_of, x, y)
print(guard.report.cuts[0].micro_batch, guard.report.differences)
"""


def test_large_weights_leave_room_for_more_than_one_sample() -> None:
    """Their gradient takes 64 MiB: the check of the loss holds two, and parts of 2 MiB a sample fit
    beside it. The same limit holds for what malloc keeps of the attempts that failed."""
    command = [python_of("torch"), "-c", LARGE_WEIGHTS]
    environ = environment(PYTHONPATH=str(SOURCE))
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]
    micro_batch, differences = done.stdout.split(maxsplit=1)
    assert int(micro_batch) >= 16
    assert differences == "()\n"
    assert "whygpu: training step 1: out of memory (asked for 256 MiB); trying 2" in done.stderr
