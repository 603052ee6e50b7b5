"""Several processes' traces as one: nothing lost, nothing claimed that was not measured."""

from __future__ import annotations

import itertools
from typing import Any

from tests.cases import each
from whygpu.launch.trace_merge import merge


def op(
    name: str, device: str = "cpu", count: int = 1, seconds: float | None = None
) -> dict[str, Any]:
    return {"op": name, "device": device, "count": count, "seconds": seconds}


def trace(
    *ops: dict[str, Any], because: tuple[tuple[str, str], ...] = (), notes: tuple[str, ...] = ()
) -> dict[str, Any]:
    reasons = [{"op": name, "reason": reason, "detail": "d"} for name, reason in because]
    return {"ops": list(ops), "on_cpu_because": reasons, "notes": list(notes)}


def test_nothing_gives_nothing() -> None:
    nothing: dict[str, Any] = {"ops": [], "on_cpu_because": [], "notes": []}
    assert merge([]) == {**nothing, "folded": [], "transfers": [], "nothing_because": []}


def test_why_nothing_ran_is_said_only_if_nothing_ran() -> None:
    idle = {**trace(), "nothing_because": ["JAX compiled and executed nothing"]}
    assert merge([idle, idle])["nothing_because"] == ["JAX compiled and executed nothing"]
    assert merge([idle, trace(op("MatMul"))])["nothing_because"] == []


def test_counts_and_times_of_the_same_operation_on_the_same_device_add_up() -> None:
    first = trace(op("MatMul", "gpu:0", 3, 0.5), op("MatMul", "cpu", 1, 0.1))
    merged = merge([first, trace(op("MatMul", "gpu:0", 4, 0.25))])
    assert merged["ops"] == [op("MatMul", "gpu:0", 7, 0.75), op("MatMul", "cpu", 1, 0.1)]


@each("order", list(itertools.permutations([0.5, None, 0.25])))
def test_a_time_that_is_partly_unknown_is_unknown(order: tuple[float | None, ...]) -> None:
    (only,) = merge(trace(op("add", count=2, seconds=seconds)) for seconds in order)["ops"]
    assert (only["count"], only["seconds"]) == (6, None)


def test_the_most_frequent_come_first() -> None:
    merged = merge([trace(op("a", count=1), op("b", count=5)), trace(op("c", count=3))])
    assert [item["op"] for item in merged["ops"]] == ["b", "c", "a"]


def test_reasons_and_notes_are_said_once() -> None:
    one = trace(op("a"), because=(("*", "no GPU visible"),), notes=("counted",))
    merged = merge([one, one])
    assert len(merged["on_cpu_because"]) == 1
    assert merged["notes"] == ["counted"]


def test_everything_in_one_process_is_not_everything_when_another_used_the_gpu() -> None:
    loader = trace(op("stack"), op("full"), because=(("*", "CPU tensor inputs"),))
    trainer = trace(op("mm", "gpu:0"), op("item"), because=(("item", "CPU tensor inputs"),))
    named = [reason["op"] for reason in merge([loader, trainer])["on_cpu_because"]]
    assert sorted(named) == ["full", "item", "stack"]


def test_folded_operations_and_transfers_add_up_too() -> None:
    add = {"op": "AddV2", "device": "gpu:0", "count": 1}
    known = {"source": "gpu:0", "target": "cpu", "count": 2, "bytes": 8}
    unknown = {**known, "source": "cpu", "target": "gpu:0", "bytes": None}
    part = {**trace(), "folded": [add], "transfers": [known, unknown]}
    merged = merge([part, {**part, "transfers": [known, {**unknown, "bytes": 4}]}])
    assert merged["folded"] == [{**add, "count": 2}]
    assert merged["transfers"] == [
        {**unknown, "count": 4, "bytes": None},
        {**known, "count": 4, "bytes": 16},
    ]


def test_merging_leaves_its_input_alone() -> None:
    first, second = trace(op("a", count=1)), trace(op("a", count=2))
    merge([first, second])
    assert first == trace(op("a", count=1))
