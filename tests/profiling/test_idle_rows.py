"""The table of benchmarks.idle: what it keeps, and what it counts."""

from __future__ import annotations

import pathlib

from benchmarks.idle import rows
from benchmarks.idle.cases import PLANTED, PLANTED_ON_GPU, Planted

GAIN = {"assuming": "", "from_seconds": 4.0, "to_low": 1.0, "to_high": 2.0, "at_most": False}


def test_each_program_has_a_row_of_its_own() -> None:
    for cases in (PLANTED, PLANTED_ON_GPU):
        assert len({rows.key_of(case) for case in cases}) == len(cases)


def test_the_prediction_is_the_one_for_the_cure_that_was_made() -> None:
    case = Planted("torch_checkpoints", "torch", "checkpointing")
    first = {**GAIN, "change": "evaluate half as often", "to_low": 0.5}
    answer = {"gains": [first, {**GAIN, "change": "save a tenth as often"}]}
    assert rows.prediction(case, answer) == rows.Predicted(2.0, 4.0, at_most=False)
    assert rows.prediction(case, {"gains": [first]}) is None


def test_a_prediction_holds_within_a_quarter_of_its_range() -> None:
    predicted = rows.Predicted(2.0, 4.0, at_most=False)
    assert [predicted.holds(gain) for gain in (1.5, 1.7, 4.9, 5.1)] == [False, True, True, False]
    limit = rows.Predicted(1.0, 4.0, at_most=True)
    assert [limit.holds(gain) for gain in (1.1, 4.9, 5.1)] == [True, True, False]
    least = rows.Predicted(2.0, 4.0, at_most=False, or_more=True)
    assert [least.holds(gain) for gain in (1.5, 1.7, 50.0)] == [False, True, True]
    assert least.text == "2.0 to 4.0 x or more"
    assert not rows.Predicted(1.0, 4.0, at_most=True, or_more=True).may_fail


def test_rows_are_read_again_but_not_broken_ones(tmp_path: pathlib.Path) -> None:
    """The last row of a program counts; an interrupted run may leave half a line."""
    file = tmp_path / "rows.jsonl"
    case = Planted("torch_item", "torch", "synchronisation")
    rows.append(file, rows.failed_row(case, "gpu", "it took too long"))
    made = rows.failed_row(case, "gpu", "")._replace(
        named="synchronisation", predicted=rows.Predicted(2.0, 4.0, at_most=False), answer={}
    )
    rows.append(file, made)
    rows.append(file, made._replace(device="cpu"))
    with file.open("a") as opened:
        opened.write('{"program": "torch_')
    assert rows.read_rows(file, "gpu") == {rows.key_of(case): made}
