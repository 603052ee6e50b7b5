"""Snapshots survive JSON unchanged, and what does not fit is an error that says where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import each
from tests.machines.healthy import healthy, without_gpu
from whygpu.model.codec import DecodeError, decode, encode
from whygpu.model.driver import NOT_LOOKED
from whygpu.model.observed import need
from whygpu.model.snapshot import Snapshot


@pytest.mark.parametrize("make", [healthy, without_gpu])
def test_a_snapshot_round_trips_through_json(make: Any) -> None:
    snapshot = make()
    assert decode(Snapshot, json.loads(json.dumps(encode(snapshot)))) == snapshot


def damaged(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    data: Any = encode(healthy())
    place = data
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    result: dict[str, Any] = data
    return result


@each(
    ("path", "value", "complaint"),
    [
        (
            ("driver", "state", "known"),
            "excellent",
            r"driver\.state\.known: expected one of working",
        ),
        (("driver", "state"), "working", r"driver\.state: expected .*known"),
        (("driver", "state"), {"known": "working"}, r"driver\.state: expected"),
        (
            ("system", "cpu", "cores"),
            "16",
            r"system\.cpu\.cores: expected a whole number, received \"16\"",
        ),
        (
            ("system", "cpu", "cores"),
            True,
            r"system\.cpu\.cores: expected a whole number, received true",
        ),
        (("probes",), {}, "probes: expected a list"),
        (("probes", 0, "facts"), [["cuInit"]], r"probes\[0\]\.facts\[0\]: expected a list of 2"),
        (("surprise",), 1, "surprise: expected no such field"),
        (("target",), None, "target: expected an object"),
        (("probes", 0, "seconds"), float("inf"), r"probes\[0\]\.seconds: expected a number"),
        (("probes", 0, "seconds"), float("nan"), r"probes\[0\]\.seconds: expected a number"),
        (("system", "cpu", "cores"), 10**400, r"system\.cpu\.cores: expected a number"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    path: tuple[Any, ...], value: Any, complaint: str
) -> None:
    with pytest.raises(DecodeError, match=complaint):
        decode(Snapshot, damaged(path, value))


def test_a_missing_field_is_refused() -> None:
    data = encode(healthy())
    del data["driver"]["uvm"]
    with pytest.raises(DecodeError, match=r"driver\.uvm: expected a value, received nothing"):
        decode(Snapshot, data)


def test_a_fact_that_came_later_is_unknown_in_an_older_snapshot() -> None:
    data = encode(healthy())
    (gpu,) = data["driver"]["gpus"]["known"]
    del gpu["memory_reserved_bytes"]
    (read,) = need(decode(Snapshot, data).driver.gpus)
    assert read.memory_reserved_bytes == NOT_LOOKED


def test_text_from_elsewhere_has_no_say_over_the_terminal() -> None:
    assert decode(str, "a\x1b[31mb\rc\x9bd\udcff") == "a\N{REPLACEMENT CHARACTER}[31mb" + "".join(
        f"\N{REPLACEMENT CHARACTER}{rest}" for rest in ("c", "d", "")
    )
    assert decode(str, "two\nlines\tÄ日本") == "two\nlines\tÄ日本"
