"""What each framework asks for at its start: its habits, and the variables that change them."""

from __future__ import annotations

import pathlib
import re

import pytest

from tests.cases import each
from whygpu.memory.demand import demand
from whygpu.memory.room import Room
from whygpu.model.units import GIB, MIB
from whygpu.tables.memory_defaults import (
    CUDA_CONTEXT,
    DEFAULTS,
    VARIABLES,
    tensorflow_leaves,
)
from whygpu.tables.variables import row_of

LOG = pathlib.Path(__file__).parents[1] / "logs" / "h200-jax-beside-full.log"
EMPTY = Room(total=40 * GIB, free=40 * GIB, capability_major=8)
AVAILABLE = 40 * GIB - CUDA_CONTEXT
FULL = EMPTY._replace(free=4 * GIB)


def test_jax_takes_three_quarters_of_the_total_and_not_of_what_is_free() -> None:
    assert demand("jax", "0.11.2", {}, EMPTY)[::2] == ("reserves", 30 * GIB)
    half_full = demand("jax", "0.11.2", {}, EMPTY._replace(free=31 * GIB))
    assert (half_full.asks, half_full.gets) == (30 * GIB, 30 * GIB)


def test_jax_goes_down_by_tenths_to_what_there_is_room_for() -> None:
    """As a real one did, on an H200 that another process had filled."""
    tried = [int(number) for number in re.findall(r"\((\d+) bytes\)", LOG.read_text())]
    assert len(tried) >= 7
    total = round(tried[0] / 0.75)
    for amount in tried:
        room = Room(total, free=amount + CUDA_CONTEXT + MIB, capability_major=9)
        wants = demand("jax", "", {}, room)
        assert wants.asks == pytest.approx(tried[0], abs=256)
        assert wants.gets == pytest.approx(amount, abs=MIB)


def test_jax_without_room_for_cuda_itself_fails() -> None:
    assert demand("jax", "", {}, EMPTY._replace(free=100 * MIB)).start == "fails"


@each(
    ("variables", "start", "asks", "gets"),
    [
        ({"XLA_CLIENT_MEM_FRACTION": ".5"}, "reserves", 20 * GIB, 20 * GIB),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.1"}, "reserves", 4 * GIB, 4 * GIB),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ""}, "reserves", 30 * GIB, 30 * GIB),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": "half"}, "fails", None, None),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": "75"}, "unknown", None, None),
        (
            {"XLA_PYTHON_CLIENT_MEM_FRACTION": ".5", "XLA_CLIENT_MEM_FRACTION": ".5"},
            "fails",
            None,
            None,
        ),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, "grows", None, 30 * GIB),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "0"}, "grows", None, 30 * GIB),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "FALSE"}, "reserves", 30 * GIB, 30 * GIB),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "Platform"}, "grows", None, AVAILABLE),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"}, "unknown", None, None),
        ({"TF_FORCE_UNIFIED_MEMORY": "1"}, "unknown", None, None),
        ({"JAX_PLATFORMS": "cpu"}, "nothing", None, None),
        ({"JAX_PLATFORMS": "cuda,cpu"}, "reserves", 30 * GIB, 30 * GIB),
        ({"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, "reserves", 30 * GIB, 30 * GIB),
    ],
)
def test_variables_that_jax_reads(
    variables: dict[str, str], start: str, asks: int | None, gets: int | None
) -> None:
    wants = demand("jax", "0.11.2", variables, EMPTY)
    assert (wants.start, wants.asks, wants.gets) == (start, asks, gets)
    named = [name for name in variables if name in wants.why]
    assert named or asks == 30 * GIB, "an answer that a variable decides names the variable"


def test_a_jax_that_counted_otherwise_is_not_guessed_at() -> None:
    assert demand("jax", "0.3.25", {}, EMPTY).start == "unknown"
    assert demand("jax", "0.4.1", {}, EMPTY).start == "reserves"


@each(("capability", "left"), [(6, 500), (7, 1050), (8, 1536), (9, 1800), (12, 1800), (None, 1800)])
def test_tensorflow_leaves_little_and_that_depends_on_the_gpu(
    capability: int | None, left: int
) -> None:
    wants = demand("tensorflow", "2.21.0", {}, FULL._replace(capability_major=capability))
    # With CUDA's own part, which TensorFlow does not count, just so much stays free.
    assert wants.start == "reserves"
    assert wants.asks == wants.gets == 4 * GIB - CUDA_CONTEXT - left * MIB


def test_tensorflow_on_a_small_gpu_and_of_old() -> None:
    assert tensorflow_leaves(2 * GIB - 1, 9, old=False) == 225 * MIB
    assert tensorflow_leaves(40 * GIB, 8, old=True) == 2 * GIB
    assert tensorflow_leaves(3 * GIB, 8, old=True) == 300 * MIB
    asks = [demand("tensorflow", version, {}, EMPTY).asks for version in ("2.5.0", "2.6.0")]
    assert asks == [AVAILABLE - AVAILABLE // 20, AVAILABLE - 1536 * MIB]


@each(
    ("variables", "start", "asks"),
    [
        ({"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, "grows", None),
        ({"TF_FORCE_GPU_ALLOW_GROWTH": "True"}, "reserves", AVAILABLE - 1536 * MIB),
        ({"TF_GPU_ALLOCATOR": "cuda_malloc_async"}, "grows", None),
        ({"TF_GPU_ALLOCATOR": "something"}, "reserves", AVAILABLE - 1536 * MIB),
        ({"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "300"}, "reserves", AVAILABLE - 300 * MIB),
        ({"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "0"}, "reserves", AVAILABLE),
        ({"TF_DEVICE_MIN_SYS_MEMORY_IN_MB": "99999"}, "reserves", AVAILABLE - 1536 * MIB),
    ],
)
def test_variables_that_tensorflow_reads(
    variables: dict[str, str], start: str, asks: int | None
) -> None:
    wants = demand("tensorflow", "2.21.0", variables, EMPTY)
    assert (wants.start, wants.asks) == (start, asks)


def test_a_limit_of_tensorflows_is_kept() -> None:
    limit = {"TF_PER_DEVICE_MEMORY_LIMIT_MB": "4096"}
    wants = demand("tensorflow", "2.21.0", limit, EMPTY)
    assert wants.start == "reserves"
    assert wants.asks is not None
    assert 0.9 * 4 * GIB < wants.asks <= 4 * GIB
    grows = demand("tensorflow", "", limit | {"TF_FORCE_GPU_ALLOW_GROWTH": "true"}, EMPTY)
    assert (grows.start, grows.gets) == ("grows", 4 * GIB)


@pytest.mark.parametrize("framework", ["torch", "cupy", "onnxruntime"])
def test_the_others_take_what_they_need(framework: str) -> None:
    assert demand(framework, "", {}, FULL)[::3] == ("grows", 4 * GIB - CUDA_CONTEXT)


def test_every_variable_of_the_table_is_one_that_whygpu_may_look_at() -> None:
    assert all(row_of(name) is not None for name in VARIABLES)
    assert all(row.says and row.changed_by and row.source for row in DEFAULTS)
