"""Estimates of PyTorch's memory: against figures from an H200, and on what programs really do.

Their processes are forked from one that has imported PyTorch and Keras.
"""

from __future__ import annotations

import functools
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.real.warm_tasks import WarmTasks
from tests.targets import python_of
from tools.estimate_table import measured, wanted_of
from whygpu.errors import UsageError
from whygpu.memory.estimator import Wanted, estimate, judge, request_of, variables_of
from whygpu.memory.gpu_rooms import of_limit
from whygpu.model.estimate import BatchMemory, MemoryEstimate
from whygpu.model.work import What

MODULES = str(pathlib.Path(__file__).parent / "estimate_modules.py")
MIB = 1 << 20
CLOSE = 0.15
"""The promise. In the table of the docs nothing is off by more than 5%."""
UNSEEN = ("torch_two_convolutions", "torch_odd_channels", "torch_grouped", "torch_vocabulary")
"""Of those that were written after the estimator."""
QUICK = ("gru", "torch_encoder", "torch_lstm", "torch_residual", "transformer")


@functools.cache
def tasks(python: str) -> WarmTasks:
    environ = variables_of(in_module("deep", backend="torch"), os.environ)
    return WarmTasks(python, ["torch", "keras"], environ)


@pytest.fixture(scope="module", autouse=True)
def end_of_tasks() -> Iterator[None]:
    yield
    if tasks.cache_info().currsize:
        tasks(python_of("torch")).close()
        tasks.cache_clear()


def in_module(name: str, **more: Any) -> Wanted:
    return Wanted(name, What("function", MODULES, name), 8)._replace(**more)


def estimated(wanted: Wanted) -> MemoryEstimate:
    end = tasks(python_of("torch")).run(request_of(wanted), variables_of(wanted, {}))
    return judge(wanted, end)


@functools.cache
def of_module(name: str, **more: Any) -> MemoryEstimate:
    return estimated(in_module(name, **more))


@pytest.mark.parametrize(
    "row",
    [
        row
        for row in measured("torch", "models.py")
        if row["model"] in QUICK and row["batch"] == 16 and not row.get("with_building")
    ]
    + [
        row
        for row in measured("torch", "small_models.py")
        if row["model"] in UNSEEN and row["batch"] <= 64
    ],
    ids=lambda row: f"{row['model']}-{row['batch']}-{row['mode']}",
)
def test_what_was_measured_on_a_gpu(row: dict[str, Any]) -> None:
    found = estimated(wanted_of(row))
    assert found.at is not None, found.why
    assert found.at.peak_bytes == pytest.approx(row["peak_bytes"], rel=CLOSE)
    assert found.at.peak_bytes <= found.at.needs_bytes
    assert sum(part.bytes for part in found.at.parts) == found.at.peak_bytes


def memory(name: str, **more: Any) -> BatchMemory:
    found = of_module(name, **more)
    assert found.at is not None, found.why
    return found.at


def part(at: BatchMemory, name: str) -> float:
    return sum(part.bytes for part in at.parts if part.name == name) / MIB


@pytest.mark.parametrize("name", ["deep", "picks"])
def test_a_process_that_imports_pytorch_itself_says_the_same(name: str) -> None:
    wanted = in_module(name)
    alone = estimate(wanted, python_of("torch"), os.environ, lambda text: None)
    assert alone._replace(seconds=0.0) == of_module(name)


def test_weights_gradients_and_states_of_a_plain_module() -> None:
    at = memory("deep")
    weights = 8 * (2 * 4 * 256 * 256 + 5 * 256) * 4 / MIB
    assert part(at, "weights") == pytest.approx(weights, rel=0.02)
    assert part(at, "optimizer") == pytest.approx(2 * weights, rel=0.02)
    # Each block keeps what its two products and the activation between them have read.
    kept = 8 * 8 * 256 * (256 + 2 * 1024) * 4 / MIB
    assert part(at, "activations") == pytest.approx(kept, rel=0.15)


def test_inference_keeps_nothing() -> None:
    at = memory("deep", mode="infer")
    assert part(at, "gradients") == part(at, "optimizer") == 0
    assert part(at, "activations") < part(memory("deep"), "activations") / 4


def test_recomputing_takes_less_memory() -> None:
    plain, less = memory("deep"), memory("checkpointed")
    assert part(less, "activations") < 0.5 * part(plain, "activations")
    assert part(less, "weights") == part(plain, "weights")


def test_sgd_has_no_state_and_mixed_precision_halves_what_is_kept() -> None:
    assert part(memory("deep", optimizer="sgd"), "optimizer") < 0.1
    mixed, plain = memory("deep", mixed=True), memory("deep")
    assert 0.4 < part(mixed, "activations") / part(plain, "activations") < 0.75
    assert part(mixed, "weights") == part(plain, "weights")


def test_weights_that_are_shared_count_once() -> None:
    assert part(memory("tied"), "weights") == pytest.approx(5000 * 256 * 4 / MIB, rel=0.05)


def test_the_loop_keeps_the_output_during_the_backward_pass() -> None:
    """It then exists beside its softmax and the gradients of both."""
    scores = 8 * 256 * 20000 * 4 / MIB
    assert part(memory("many_scores"), "activations") == pytest.approx(4 * scores, rel=0.02)


def test_at_inference_a_loop_may_keep_the_output_of_the_batch_before() -> None:
    scores = 8 * 256 * 20000 * 4 / MIB
    at = memory("many_scores", mode="infer")
    assert part(at, "activations") == pytest.approx(scores, rel=0.02)
    assert (at.most_bytes - at.least_bytes) / MIB == pytest.approx(scores, rel=0.05)


def test_in_training_a_loop_may_keep_large_results_of_the_batch_before() -> None:
    """As long as what only the backward pass needs is larger, they do not matter."""
    copies = 2 * 8 * 256 * 4000 * 8 / MIB
    at = memory("many_results")
    assert (at.most_bytes - at.least_bytes) / MIB > 0.5 * copies
    plain = memory("many_scores")
    assert plain.most_bytes == plain.least_bytes


def test_examples_of_several_rows_for_each_sample_stay_so() -> None:
    once, twice = (part(memory("graph", batch=batch), "activations") for batch in (100, 200))
    assert twice == pytest.approx(2 * once, rel=0.05)
    edges = 100 * 8 * 256 * 4 / MIB
    assert once > 2 * edges


def test_attention_has_no_matrix_of_scores() -> None:
    scores = 8 * 4 * 1024 * 1024 * 4 / MIB
    at = memory("attention", mode="infer")
    assert part(at, "activations") + part(at, "workspace") < scores


@pytest.mark.parametrize("name", ["on_its_device", "insists_on_cuda"])
def test_a_program_that_wants_a_gpu_gets_to_believe_in_one(name: str) -> None:
    assert part(memory(name), "inputs") == pytest.approx(8 * 256 * 4 / MIB, rel=0.1)


def test_a_value_that_is_asked_for_is_told_with_its_place() -> None:
    notes = of_module("asks").notes
    assert any("estimate_modules.py:" in note and "value" in note for note in notes)


def test_memory_that_depends_on_a_value_cannot_be_told() -> None:
    found = of_module("loops", room=of_limit(10 << 30))
    assert found.verdict == "unknown"
    assert found.largest is None
    assert "depends on a value that estimate_modules.py:" in found.why


@pytest.mark.parametrize("name", ["hidden_loop", "far_loop", "while_true", "while_false"])
def test_a_loop_whose_length_is_in_the_data_never_fits(name: str) -> None:
    """Also if another part has the peak, if the loop begins late, or if it has no end here."""
    found = of_module(name, room=of_limit(100 << 30))
    assert found.verdict == "unknown"
    assert "estimate_modules.py:" in found.why


def test_a_value_that_is_only_checked_or_logged_leaves_the_verdict() -> None:
    found = of_module("checks", room=of_limit(10 << 30))
    assert found.verdict == "fits"
    assert any("reads the value of a tensor" in note for note in found.notes)


def test_sizes_that_depend_on_values_cannot_be_told() -> None:
    found = of_module("picks")
    assert (found.verdict, found.at) == ("unknown", None)
    assert found.why


def test_lengths_keep_their_values() -> None:
    assert part(memory("packed"), "workspace") > 0


def test_shapes_are_the_users_to_give() -> None:
    with pytest.raises(UsageError, match="give --input, such as 3x224x224"):
        of_module("without_examples")
    assert part(memory("without_examples", input="256"), "weights") > 0
    with pytest.raises(UsageError, match="no weights to train: give --infer"):
        of_module("without_weights")
    with pytest.raises(UsageError, match="no optimiser 'adamantium'"):
        of_module("deep", optimizer="adamantium")


def test_the_largest_batch_fits_and_the_next_does_not() -> None:
    room = of_limit(1500 * MIB)
    found = of_module("deep", room=room)
    assert found.verdict == "fits"
    assert found.largest is not None
    assert found.next_batch is not None
    assert found.next_batch <= found.largest.batch * 1.01 + 1
    beyond = of_module("deep", room=room, batch=found.next_batch)
    assert beyond.verdict == "does-not-fit"
    assert beyond.largest is not None
    assert abs(beyond.largest.batch - found.largest.batch) <= 0.01 * found.largest.batch + 1
    assert {way.name for way in beyond.others} == {
        "mixed precision",
        "SGD instead of adam",
        "both",
    }


def test_a_keras_model_without_a_loss() -> None:
    found = of_module("small_keras_model", backend="torch")
    assert found.framework == "torch"
    assert found.at is not None
    weights = (27 * 64 + 64 + 30 * 30 * 64 * 10 + 10) * 4 / MIB
    assert part(found.at, "weights") == pytest.approx(weights, rel=0.01)
    assert part(found.at, "optimizer") >= 2 * weights * 0.99
    with pytest.raises(UsageError, match="Keras has no optimiser 'adamantium'"):
        of_module("small_keras_model", backend="torch", optimizer="adamantium")
