"""Loops in PyTorch, JAX and TensorFlow: gradients in parts, and losses that have no parts."""

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

PROGRAM = pathlib.Path(__file__).with_name("guard_loop_cases.py")
SOURCE = pathlib.Path(whygpu.__path__[0]).parent
FLOAT32_EPSILON = 2.0**-23
BFLOAT16_EPSILON = 2.0**-7
SAMPLES = 13
TARGETS = {"tensorflow": "tensorflow-2.21"}


def cases(framework: str, home: pathlib.Path) -> Any:
    target = TARGETS.get(framework, framework)
    need(target, "bfloat16")
    environ = environment(PYTHONPATH=str(SOURCE), HOME=str(home), OMP_NUM_THREADS="1")
    command = [python_of(target), str(PROGRAM), framework]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def torch(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cases("torch", tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def jax(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cases("jax", tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def tensorflow(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return cases("tensorflow", tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_gradients_of_parts_are_those_of_the_batch(
    framework: str, request: pytest.FixtureRequest
) -> None:
    for name, case in request.getfixturevalue(framework)["same"].items():
        assert case["in_parts"] == 1, name
        # Every number is a sum over the samples, and what they contribute is a sum of few.
        assert case["gap"] <= SAMPLES * FLOAT32_EPSILON * case["size"], name
        assert len(case["differences"]) == ("unchecked" in name), name


@pytest.mark.parametrize("framework", ["torch", "jax", "tensorflow"])
def test_work_in_few_digits_is_not_taken_for_another_loss(
    framework: str, request: pytest.FixtureRequest
) -> None:
    case = request.getfixturevalue(framework)["in bfloat16"]
    assert (case["in_parts"], case["differences"]) == (1, [])
    # The gradient of each part is rounded when it is made, and what goes into it before.
    assert case["gap"] <= 2 * BFLOAT16_EPSILON * case["size"]


@pytest.mark.parametrize(
    ("framework", "case", "reason"),
    [
        ("torch", "between samples", "neither the mean nor the sum"),
        ("torch", "over chosen", "neither the mean nor the sum"),
        ("torch", "exact", "batch normalisation (2)"),
        ("torch", "over chosen, in bfloat16", "neither the mean nor the sum"),
        ("torch", "steps within backward", "as soon as their gradient is ready"),
        ("jax", "between samples", "neither the mean nor the sum"),
        ("jax", "over chosen", "neither the mean nor the sum"),
        ("jax", "auxiliary", "the auxiliary value"),
        ("jax", "raw key", "jax.random.key()"),
        ("jax", "rows", "one row per sample"),
        ("tensorflow", "between samples", "neither the mean nor the sum"),
        ("tensorflow", "over chosen", "neither the mean nor the sum"),
        ("tensorflow", "exact", "the state in calls:0 changed once for each micro-batch"),
        ("tensorflow", "a loss per sample", "a tensor of shape (13, 3)"),
    ],
)
def test_what_would_train_something_else_is_refused(
    framework: str, case: str, reason: str, request: pytest.FixtureRequest
) -> None:
    told = request.getfixturevalue(framework)["refused"][case]
    assert reason in told["refused"]
    assert told["clean"]


def test_batch_norm_is_told_of_and_its_means_are_those_of_the_batch(torch: Any) -> None:
    assert "batch normalisation (2)" in torch["norm"]["differences"][0]
    parts, whole = torch["norm"]["buffers"], torch["running"]
    # What is averaged has been through tanh, so that no value is larger than one.
    assert max(abs(a - b) for a, b in zip(parts[0], whole[0], strict=True)) <= (
        SAMPLES * FLOAT32_EPSILON
    )
    assert parts[2] == whole[2] == 1


@pytest.mark.parametrize(
    ("framework", "word"), [("torch", "dropout"), ("jax", "random"), ("tensorflow", "random")]
)
def test_random_numbers_are_told_of(
    framework: str, word: str, request: pytest.FixtureRequest
) -> None:
    assert word in request.getfixturevalue(framework)["dropout"]["differences"][0]


def test_a_loss_that_shows_its_kind_later_is_refused_then(torch: Any) -> None:
    assert "neither the mean nor the sum" in torch["later data"]


def test_gradients_that_nobody_told_of_are_not_left_half_done(torch: Any) -> None:
    assert "1 tensors that the guard does not know (shapes (3,))" in torch["strangers"]


def test_processes_that_train_together_are_refused(torch: Any) -> None:
    assert "trains together with others" in torch["many processes"]


def test_jax_is_guarded_outside_jit(jax: Any) -> None:
    assert "Call it outside" in jax["inside jit"]


def test_tensorflow_is_guarded_outside_its_graphs(tensorflow: Any) -> None:
    assert "Call them outside" in tensorflow["inside a graph"]


def test_variables_that_a_failed_step_changed_are_put_back(tensorflow: Any) -> None:
    told = tensorflow["fails late"]
    assert (told["calls"], told["parts"]) == (2, 2)
    assert told["differences"] == ["the state in calls:0 changed once for each micro-batch"]
