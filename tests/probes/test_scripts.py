"""What can be said of the probe scripts without a framework."""

from __future__ import annotations

import runpy
from typing import Any

import pytest

from tests.cases import each
from whygpu.probes.probe_process import HARNESS


@pytest.fixture(scope="module")
def harness() -> dict[str, Any]:
    return runpy.run_path(str(HARNESS))


def nested(numbers: list[float], width: int) -> list[list[float]]:
    return [numbers[i : i + width] for i in range(0, len(numbers), width)]


@pytest.mark.parametrize("operation", ["matmul", "convolution"])
def test_a_result_is_checked_number_by_number(harness: dict[str, Any], operation: str) -> None:
    sums = harness["Sums"]()
    right = sums.expected(operation)
    assert sums.agrees(operation, nested(right, 8))
    assert sums.agrees(operation, [number + 1e-4 for number in right])
    for wrong in (right[0] + 2.0, float("nan"), float("inf")):
        assert not sums.agrees(operation, [*right[:-1], wrong])
    assert not sums.agrees(operation, right[:-1])
    assert not sums.agrees(operation, [0.0] * len(right))


def test_the_true_results_are_those_of_another_method(harness: dict[str, Any]) -> None:
    sums = harness["Sums"]()
    matmul = [
        sum(sums.left[i][k] * sums.right[k][j] for k in range(48))
        for i in range(32)
        for j in range(40)
    ]
    assert sums.expected("matmul") == matmul

    def pixel(y: int, x: int, channel: int) -> float:
        inside = 0 <= y < 10 and 0 <= x < 10
        return float(sums.image[0][y][x][channel]) if inside else 0.0

    convolution = [
        sum(
            pixel(y + dy - 1, x + dx - 1, i) * sums.kernel[dy][dx][i][o]
            for dy in range(3)
            for dx in range(3)
            for i in range(8)
        )
        for y in range(10)
        for x in range(10)
        for o in range(8)
    ]
    assert sums.expected("convolution") == convolution


@each(
    ("device", "kind"),
    [
        ("GPU:0", "gpu"),
        ("cuda:1", "gpu"),
        ("mps", "gpu"),
        ("CPU:0", "cpu"),
        ("cpu", "cpu"),
        ("XLA_GPU:0", "other"),
        ("tpu:0", "other"),
        ("default", "other"),
    ],
)
def test_kinds_of_devices(harness: dict[str, Any], device: str, kind: str) -> None:
    assert harness["kind_of"](device) == kind
