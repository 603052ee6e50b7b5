"""What the guard makes of Keras models: the same training in parts, or a refusal in words."""

from __future__ import annotations

import json
import pathlib
import subprocess
from typing import Any

import pytest

import whygpu
from tests.abilities import need
from tests.launch.programs import environment
from tests.patience import PATIENCE
from tests.targets import python_of

# The program trains some forty models.
pytestmark = pytest.mark.timeout(900)

PROGRAM = pathlib.Path(__file__).with_name("guard_keras_cases.py")
SOURCE = pathlib.Path(whygpu.__path__[0]).parent
TARGETS = {"jax": "jax", "torch": "torch", "tensorflow": "tensorflow-2.21"}
FLOAT16_EPSILON = 2.0**-10
FLOAT32_EPSILON = 2.0**-23


@pytest.fixture(scope="module", params=TARGETS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    need(TARGETS[request.param], "float16")
    environ = environment(
        PYTHONPATH=str(SOURCE),
        HOME=str(tmp_path_factory.mktemp("home")),
        KERAS_BACKEND=request.param,
        OMP_NUM_THREADS="1",
        # Each model is compiled for a few steps.
        XLA_FLAGS="--xla_backend_optimization_level=0",
    )
    command = [python_of(TARGETS[request.param]), str(PROGRAM)]
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=3 * PATIENCE
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_micro_batches_train_the_same(told: Any) -> None:
    """Every number of a step is a sum over the batch, and steps build on each other."""
    for name, case in told["same"].items():
        allowed = FLOAT32_EPSILON * told["batch"] * case["steps"] * case["largest"]
        assert case["in_parts"] == case["steps"] > 0, name
        assert case["history"] <= allowed, name
        assert case["weights"] <= allowed, name
        assert case["differences"] == [], name


def test_train_on_batch_is_guarded_as_well(told: Any) -> None:
    case = told["on batches"]
    without, guarded = case["runs"]
    assert case["in_parts"] == len(guarded["losses"]) > 0
    for what in ("losses", "weights"):
        largest = max(abs(value) for value in without[what])
        gaps = [abs(a - b) for a, b in zip(without[what], guarded[what], strict=True)]
        assert max(gaps) <= FLOAT32_EPSILON * told["batch"] * case["in_parts"] * largest


def test_a_fit_that_fails_takes_its_callbacks_guard_with_it(told: Any) -> None:
    assert told["after failure"] == {"guarded steps": 1, "left": []}


def test_loss_scaling_for_float16_is_kept(told: Any) -> None:
    half = told["half"]
    assert half["in_parts"] == half["steps"] > 0
    assert half["weights"] <= FLOAT16_EPSILON * half["steps"] * half["largest"]


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("added sum", "that is not a mean over the samples"),
        ("added square", "that is not a mean over the samples"),
        ("added, between samples", "layers add their own losses"),
        ("own step", "OwnStep defines its own train_step()"),
    ],
)
def test_what_would_not_be_the_same_is_refused(told: Any, case: str, reason: str) -> None:
    assert reason in told["refused"][case]["words"]
    assert told["refused"][case]["weights_kept"]


def test_predictions_that_cannot_be_repeated_are_refused(told: Any) -> None:
    case = told["refused"].get("not repeatable")
    if case is None:
        pytest.skip("compiled, a Python counter is a constant")
    assert "the second time they were different" in case["words"]


def test_batch_norm_is_told_of_and_its_means_are_those_of_the_batch(told: Any) -> None:
    norm = told["batch_norm"]
    assert norm["whole differs"] == []
    assert "batch normalisation (norm)" in norm["parts differs"][0]
    # What is averaged has been through tanh, so that no value is larger than one.
    allowed = FLOAT32_EPSILON * told["batch"]
    pairs = zip(norm["whole"], norm["parts"], strict=True)
    assert max(abs(whole - parts) for whole, parts in pairs) <= allowed
    assert max(abs(value) for value in norm["whole"]) > 100 * allowed


def test_random_numbers_are_told_of(told: Any) -> None:
    assert any("random numbers" in words for words in told["dropout"])


def test_exact_refuses_what_is_only_nearly_the_same(told: Any) -> None:
    assert "exact=True" in told["exact"]
