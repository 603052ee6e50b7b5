"""The table of a trace, whole against what a person is to read."""

from __future__ import annotations

from typing import Any

import pytest

from whygpu.render.trace_text import render


def op(name: str, device: str, count: int, seconds: float | None = None) -> dict[str, Any]:
    return {"op": name, "device": device, "count": count, "seconds": seconds}


TRACE = {
    "ops": [
        op("MatMul", "gpu:0", 1_200_000),
        op("StringJoin", "cpu", 12, 0.25),
        op("tf.function train_step", "cpu", 300, 4.5),
        op("tf.function initialize_variables", "cpu", 1, 0.078),
    ],
    "on_cpu_because": [
        {"op": "StringJoin", "reason": "no GPU kernel", "detail": "TensorFlow has none"},
        {"op": "AsString", "reason": "no GPU kernel", "detail": "TensorFlow has none"},
    ],
    "notes": ["estimates from 3 of 10 runs"],
}

SHOWN = """\
operations by device: gpu:0 99 % (1,200,000), cpu <1 % (12)

  operation   device      count  seconds
  MatMul      gpu:0   1,200,000        -
  StringJoin  cpu            12    0.250

timed as a whole:
  - tf.function train_step: 4.500 s in 300 calls on cpu
  - tf.function initialize_variables: 0.078 s in 1 call on cpu

on the CPU because:
  - no GPU kernel: AsString, StringJoin: TensorFlow has none

how this was counted:
  - estimates from 3 of 10 runs
"""


def test_the_whole_page() -> None:
    assert render(TRACE) == SHOWN


def test_no_operation_is_said_so() -> None:
    assert render({"ops": [], "on_cpu_because": []}) == "no operation was seen\n"


def test_why_no_operation_was_seen_is_said() -> None:
    built = "a graph of 3 operations was built, and no session has run any of it"
    shown = render({"ops": [], "on_cpu_because": [], "nothing_because": [built]})
    assert shown == f"no operation was seen\n  - {built}\n"


def test_a_program_that_failed_first_is_said_so() -> None:
    shown = render({"ops": [], "on_cpu_because": []}, failed=True)
    assert shown == "no operation was seen before the program failed\n"


def test_folded_operations_and_transfers_are_no_operations() -> None:
    folded = [
        {"op": "AddV2", "device": "gpu:0", "count": 1},
        {"op": "Mul", "device": "gpu:0", "count": 3},
    ]
    transfers = [
        {"source": "cpu", "target": "gpu:0", "count": 1, "bytes": None},
        {"source": "gpu:0", "target": "cpu", "count": 1200, "bytes": 4096},
    ]
    found = {"ops": [], "on_cpu_because": [], "folded": folded, "transfers": transfers}
    assert (
        render(found)
        == """\
no operation ran: TensorFlow had folded them all into constants

folded into constants before the first run, so that they never ran:
  - placed on gpu:0: AddV2, Mul (3 times)

transfers between devices:
  - cpu to gpu:0: 1 tensors, of unknown size
  - gpu:0 to cpu: 1,200 tensors, 4 KiB
"""
    )


def test_what_holds_for_everything_names_no_operation() -> None:
    reasons = [{"op": "*", "reason": "no GPU visible", "detail": "JAX has no GPU"}]
    shown = render({"ops": [op("add", "cpu", 1)], "on_cpu_because": reasons})
    assert "  - no GPU visible: JAX has no GPU\n" in shown


def test_a_few_operations_on_another_device_are_not_lost_among_many() -> None:
    ops = [op(f"op{i}", "gpu:0", 1000 - i) for i in range(50)] + [op("odd", "cpu", 1)]
    shown = render({"ops": ops, "on_cpu_because": []})
    assert "  odd " in shown
    assert "  and 40 more, all in --report FILE\n" in shown


@pytest.mark.parametrize("width", [60, 80, 100])
def test_it_fits_the_terminal(width: int) -> None:
    long = "a_function_name_that_goes_on_" * 5
    reasons = [{"op": "b", "reason": "explicit device", "detail": "word " * 40}]
    ops = [op(long, "cpu", 10**9, 12345.678), op("b", "gpu:0", 1)]
    shown = render({"ops": ops, "on_cpu_because": reasons, "notes": ["n " * 90]}, width=width)
    assert max(map(len, shown.splitlines())) <= width
