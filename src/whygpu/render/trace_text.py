"""The devices on which the operations of a run were executed, as a table for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from whygpu.model.figures import counted, first_of
from whygpu.model.units import size_text
from whygpu.render.text_page import Page

EVERYTHING = "*"
FUNCTION = "tf.function "
"""Prefix of a function that was timed as a whole; it is not counted as an operation."""
MOST_ROWS = 20
MOST_NAMES = 6
MOST_FUNCTIONS = 5


def render(trace: Mapping[str, Any], *, width: int = 80, failed: bool = False) -> str:
    """`trace` as trace_merge returns it; `failed`: the program did not end well."""
    functions = [op for op in trace["ops"] if op["op"].startswith(FUNCTION)]
    ops = [op for op in trace["ops"] if not op["op"].startswith(FUNCTION)]
    page = Page(width, color=False)
    if not ops:
        page.hanging("", nothing_ran(trace, failed), 0)
        for why in trace.get("nothing_because", ()):
            page.hanging("  -", why, 4)
    else:
        page.hanging("", shares_text(ops), 0)
        page.line()
        for line in _table(ops, width):
            page.line(line)
    if trace.get("folded"):
        page.section("folded into constants before the first run, so that they never ran")
        for line in folded_lines(trace["folded"]):
            page.hanging("  -", line, 4)
    if trace.get("transfers"):
        page.section("transfers between devices")
        for each in trace["transfers"]:
            page.line(f"  - {each['source']} to {each['target']}: {moved(each)}")
    if functions:
        page.section("timed as a whole")
        for line in function_lines(functions):
            page.line(line)
    if trace["on_cpu_because"]:
        page.section("on the CPU because")
        for reason in reason_lines(trace["on_cpu_because"]):
            page.hanging("  -", reason, 4)
    if trace.get("notes"):
        page.section("how this was counted")
        for note in trace["notes"]:
            page.hanging("  -", note, 4)
    return page.text()


def nothing_ran(trace: Mapping[str, Any], failed: bool) -> str:
    if trace.get("folded"):
        return "no operation ran: TensorFlow had folded them all into constants"
    if failed:
        return "no operation was seen before the program failed"
    return "no operation was seen"


def folded_lines(folded: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """By the device on which TensorFlow had placed them."""
    by_device: dict[str, list[str]] = {}
    for each in folded:
        times = f" ({each['count']:,} times)" if each["count"] > 1 else ""
        by_device.setdefault(each["device"], []).append(f"{each['op']}{times}")
    for device, names in by_device.items():
        yield f"placed on {device}: {first_of(names, MOST_NAMES)}"


def moved(transfer: Mapping[str, Any]) -> str:
    size = "of unknown size" if transfer["bytes"] is None else size_text(transfer["bytes"])
    return f"{transfer['count']:,} tensors, {size}"


def shares_text(ops: Sequence[Mapping[str, Any]]) -> str:
    """The share of each device in the number of operations."""
    counts: dict[str, int] = {}
    for op in ops:
        counts[op["device"]] = counts.get(op["device"], 0) + op["count"]
    total = sum(counts.values())
    shares = [
        f"{device} {_percent(count, total)} ({count:,})"
        for device, count in sorted(counts.items(), key=lambda item: -item[1])
    ]
    return f"operations by device: {', '.join(shares)}"


def _percent(count: int, total: int) -> str:
    """Rounded, but 0 and 100 only if they are exact."""
    if count == total:
        return "100 %"
    share = 100 * count / total
    return "<1 %" if share < 1 else f"{min(share, 99):.0f} %"


def _table(ops: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    shown = _most_frequent(ops)
    cells = [("operation", "device", "count", "seconds")] + [
        (op["op"], op["device"], f"{op['count']:,}", seconds_text(op["seconds"])) for op in shown
    ]
    device, count, seconds = (max(len(row[column]) for row in cells) for column in (1, 2, 3))
    longest = max(len(row[0]) for row in cells)
    name = max(min(longest, width - device - count - seconds - 8), len("operation"))
    for row in cells:
        yield (
            f"  {_cut(row[0], name):<{name}}  {row[1]:<{device}}"
            f"  {row[2]:>{count}}  {row[3]:>{seconds}}"
        )
    hidden = len(ops) - len(shown)
    if hidden:
        yield f"  and {hidden} more, all in --report FILE"


def seconds_text(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.3f}"


def _most_frequent(ops: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The most frequent of each device, so that a few on another device are not lost."""
    by_device: dict[str, list[Mapping[str, Any]]] = {}
    for op in sorted(ops, key=lambda op: -op["count"]):
        by_device.setdefault(op["device"], []).append(op)
    fair = max(MOST_ROWS // len(by_device), 3)
    chosen = [op for device_ops in by_device.values() for op in device_ops[:fair]]
    return sorted(chosen, key=lambda op: -op["count"])


def function_lines(functions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    slowest = sorted(functions, key=lambda op: -(op["seconds"] or 0.0))
    for op in slowest[:MOST_FUNCTIONS]:
        took = f"{op['seconds'] or 0.0:.3f} s in {counted(op['count'], 'call')}"
        yield f"  - {op['op']}: {took} on {op['device']}"
    if len(slowest) > MOST_FUNCTIONS:
        yield f"  - and {len(slowest) - MOST_FUNCTIONS} more"


def reason_lines(reasons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One item for each reason, with the operations it holds for."""
    groups: dict[tuple[str, str], list[str]] = {}
    for reason in reasons:
        groups.setdefault((reason["reason"], reason["detail"]), []).append(reason["op"])
    for (why, detail), names in groups.items():
        which = "" if EVERYTHING in names else f"{first_of(sorted(set(names)), MOST_NAMES)}: "
        yield f"{why}: {which}{detail}"


def _cut(name: str, room: int) -> str:
    return name if len(name) <= room else name[: room - 3] + "..."
