"""Merges the traces of several processes and frameworks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

EVERYTHING = "*"
"""The op of a reason that holds for all operations of its process."""


def merge(traces: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sums of counts and times, with each reason and note once.

    There is a time only if every part of it was measured. If one process ran everything on the CPU
    and another used a GPU, the reason is given for each operation of the first.
    """
    parts = list(traces)
    ops = _added_up([op for part in parts for op in part["ops"]])
    nothing = () if ops else [why for part in parts for why in part.get("nothing_because", ())]
    anything_elsewhere = any(op["device"] != "cpu" for part in parts for op in part["ops"])
    return {
        "ops": ops,
        "on_cpu_because": _said_once(
            reason for part in parts for reason in _reasons(part, anything_elsewhere)
        ),
        "notes": list(dict.fromkeys(note for part in parts for note in part.get("notes", ()))),
        "folded": _folded(each for part in parts for each in part.get("folded", ())),
        "transfers": _transfers(each for part in parts for each in part.get("transfers", ())),
        "nothing_because": list(dict.fromkeys(nothing)),
    }


def _folded(found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    totals: dict[tuple[str, str], int] = {}
    for each in found:
        key = (each["op"], each["device"])
        totals[key] = totals.get(key, 0) + each["count"]
    return [
        {"op": op, "device": device, "count": count}
        for (op, device), count in sorted(totals.items())
    ]


def _transfers(found: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """There are bytes only if every part of them is known."""
    totals: dict[tuple[str, str], dict[str, Any]] = {}
    for each in found:
        known = totals.get((each["source"], each["target"]))
        if known is None:
            totals[each["source"], each["target"]] = dict(each)
            continue
        known["count"] += each["count"]
        both = known["bytes"] is not None and each["bytes"] is not None
        known["bytes"] = known["bytes"] + each["bytes"] if both else None
    return [totals[key] for key in sorted(totals)]


def _added_up(ops: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The most frequent first."""
    totals: dict[tuple[str, str], dict[str, Any]] = {}
    for op in ops:
        key = (op["op"], op["device"])
        known = totals.get(key)
        if known is None:
            totals[key] = {name: op[name] for name in ("op", "device", "count", "seconds")}
            continue
        known["count"] += op["count"]
        timed = known["seconds"] is not None and op["seconds"] is not None
        known["seconds"] = round(known["seconds"] + op["seconds"], 6) if timed else None
    return sorted(totals.values(), key=lambda op: (-op["count"], op["op"], op["device"]))


def _reasons(part: Mapping[str, Any], anything_elsewhere: bool) -> Iterable[Mapping[str, Any]]:
    for reason in part["on_cpu_because"]:
        if reason["op"] != EVERYTHING or not anything_elsewhere:
            yield reason
            continue
        for op in part["ops"]:
            if op["device"] == "cpu":
                yield {**reason, "op": op["op"]}


def _said_once(reasons: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for reason in reasons:
        found.setdefault((reason["op"], reason["reason"]), dict(reason))
    return list(found.values())
