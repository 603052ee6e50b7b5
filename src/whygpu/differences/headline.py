"""The answer in one sentence, and its standing."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.model.derived import and_list, display_name
from whygpu.model.differences import Difference, FrameworkChange, Reason, Side
from whygpu.model.report import FrameworkVerdict, Report
from whygpu.model.standing import Standing

_RANKS: dict[FrameworkVerdict, int] = {"gpu": 0, "cpu": 1, "broken": 2}
_MOST_NAMED = 3


def headline_of(
    sides: tuple[Side, Side],
    reports: tuple[Report, Report],
    frameworks: Sequence[FrameworkChange],
    differences: Sequence[Difference],
    reasons: Sequence[Reason],
) -> tuple[str, Standing]:
    if not differences and not reasons and sides[0].verdict == sides[1].verdict:
        return f"nothing differs between {sides[0].name} and {sides[1].name}", "answered"
    changed = [item for item in frameworks if item.before != item.after]
    worse = [item for item in changed if _rank(item.after) > _rank(item.before)]
    better = [item for item in changed if _rank(item.after) < _rank(item.before)]
    new = [reason for reason in reasons if reason.present == "after"]
    gone = [reason for reason in reasons if reason.present == "before"]
    if worse:
        return (
            f"{_change(worse)}: {_because(new, differences)}",
            "wrong" if all(reason.sets for reason in new) else "unknown",
        )
    if better:
        return f"{_change(better)}: {_because(gone, differences)}", (
            "attention" if new else "answered" if all(r.sets for r in gone) else "unknown"
        )
    removed = [item for item in changed if item.after == "not-installed"]
    if removed:
        return f"{_change(removed)}{_but(new)}", "attention"
    unclear = [item for item in changed if "unknown" in (item.before, item.after)]
    if unclear and not all("gpu" not in (item.before, item.after) for item in unclear):
        names = and_list([display_name(item.name) for item in unclear])
        return f"cannot tell what changed for {names}: {_why_unclear(unclear, reports)}", "unknown"
    added = [item for item in changed if item.before == "not-installed"]
    if added:
        return f"{_change(added)}{_but(new)}", "attention" if new else "answered"
    same = f"the verdict is the same ({_verdict_text(frameworks, sides)})"
    if new:
        return f"{same}, but there is a new problem: {_because(new, differences)}", (
            "attention" if all(reason.sets for reason in new) else "unknown"
        )
    if gone:
        return f"{same}, and a problem is gone: {_because(gone, differences)}", "answered"
    count = len(differences)
    which = (
        "the only difference does not matter"
        if count == 1
        else (f"none of the {count} differences matters here")
    )
    return f"{same}; {which}", "answered"


def _rank(verdict: FrameworkVerdict) -> float:
    """Comparisons with what is unknown are false."""
    return _RANKS.get(verdict, float("nan"))


def _but(new: Sequence[Reason]) -> str:
    return ", and there is a new problem, below" if new else ""


_NOW: dict[FrameworkVerdict, tuple[str, str]] = {
    "gpu": ("now uses the GPU", "now use the GPU"),
    "cpu": ("no longer uses the GPU", "no longer use the GPU"),
    "broken": ("no longer works", "no longer work"),
    "not-installed": ("is no longer installed", "are no longer installed"),
}


def _change(items: Sequence[FrameworkChange]) -> str:
    """What became of the frameworks whose verdict changed most, or first."""
    worst = max(items, key=lambda item: abs(_rank(item.after) - _rank(item.before)) or 0)
    alike = [item for item in items if (item.before, item.after) == (worst.before, worst.after)]
    one, several = _NOW[worst.after]
    if worst.before == "not-installed":
        one, several = "is newly installed", "are newly installed"
    elif (worst.before, worst.after) == ("broken", "cpu"):
        one, several = "now works, on the CPU", "now work, on the CPU"
    names = and_list([display_name(item.name) for item in alike])
    return f"{names} {one if len(alike) == 1 else several}"


def _because(reasons: Sequence[Reason], differences: Sequence[Difference]) -> str:
    explained = [reason for reason in reasons if reason.sets]
    if not explained:
        return "what changed does not show why"
    first = [differences[place] for place in explained[0].sets[0]]
    shown = and_list([f"{item.title} ({item.values})" for item in first[:_MOST_NAMED]])
    if len(first) > _MOST_NAMED:
        shown = f"{len(first)} differences together"
    elif len(first) > 1:
        shown += ", together"
    unknown = ", as far as it can be told" if not all(item.comparable for item in first) else ""
    sets = {each for reason in explained for each in reason.sets}
    more = f"; and {len(sets) - 1} more, below" if len(sets) > 1 else ""
    left = "; not everything is explained" if len(explained) < len(reasons) else ""
    return f"because of {shown}{unknown}{more}{left}"


def _verdict_text(frameworks: Sequence[FrameworkChange], sides: tuple[Side, Side]) -> str:
    if sides[0].verdict != sides[1].verdict:
        return "of each framework"
    return sides[0].verdict


def _why_unclear(unclear: Sequence[FrameworkChange], reports: tuple[Report, Report]) -> str:
    first = unclear[0]
    report = reports[0] if first.before == "unknown" else reports[1]
    summary = next((item.summary for item in report.frameworks if item.name == first.name), "")
    return summary or report.headline
