"""The answer in one sentence, and its standing."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.diagnosis.verdicts import why_unknown
from whygpu.model.derived import and_list, display_name
from whygpu.model.differences import Difference, FrameworkChange, Reason, Side
from whygpu.model.finding import Finding
from whygpu.model.observed import Known
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
    """The standing follows from the verdicts: worse is worse, also if the reason is unknown."""
    changed = [item for item in frameworks if item.before != item.after]
    if not reasons and not changed:
        return _nothing_new(sides, reports, frameworks, differences)
    worse = [item for item in changed if _rank(item.after) > _rank(item.before)]
    better = [item for item in changed if _rank(item.after) < _rank(item.before)]
    new = [reason for reason in reasons if reason.present == "after"]
    gone = [reason for reason in reasons if reason.present == "before"]
    if worse:
        return f"{_change(worse)}: {_because(new, differences)}", "wrong"
    if better:
        standing: Standing = "attention" if new else "answered"
        but = "; but there is a new problem, below" if new else ""
        return f"{_change(better)}: {_because(gone, differences)}{but}", standing
    removed = [item for item in changed if item.after == "not-installed"]
    if removed:
        return f"{_change(removed)}{_but(new)}", "attention"
    unclear = [item for item in changed if "unknown" in (item.before, item.after)]
    if unclear and new:
        because = _because(new, differences)
        return f"{_unclear_text(unclear)} there is a new problem: {because}", "attention"
    if unclear:
        names = and_list([display_name(item.name) for item in unclear])
        return f"cannot tell what changed for {names}: {_why_unclear(unclear, reports)}", "unknown"
    added = [item for item in changed if item.before == "not-installed"]
    if added:
        return f"{_change(added)}{_but(new)}", "attention" if new else "answered"
    same = _same_verdict(sides)
    if new:
        because = _because(new, differences)
        return f"{same}, but there is a new problem: {because}", "attention"
    return f"{same}, and a problem is gone: {_because(gone, differences)}", "answered"


def _nothing_new(
    sides: tuple[Side, Side],
    reports: tuple[Report, Report],
    frameworks: Sequence[FrameworkChange],
    differences: Sequence[Difference],
) -> tuple[str, Standing]:
    """No framework's verdict and no problem is another one. Whether a difference matters is only
    known for what was judged: a framework that was not run may fail because of it."""
    lasting = [item for item in differences if item.comparable and item.kind != "moment"]
    if not lasting:
        but = "" if not differences else ", except for free memory and processes"
        if not all(item.comparable for item in differences):
            but = " in what was checked on both"
        return f"nothing differs between {sides[0].name} and {sides[1].name}{but}", "answered"
    # All that the list counts, with free memory: a headline that counts fewer contradicts it.
    count = sum(item.comparable for item in differences)
    if fewer_gpus(reports):
        return _same_verdict(sides), "answered"
    one = count == 1
    only = "the only difference" if count == len(differences) else "the only known difference"
    unknown = [item for item in frameworks if item.after == "unknown"]
    if sides[1].verdict == "unknown":
        which = only if one else f"one of the {count} differences"
        why = _why_unclear(unknown, reports) if unknown else reports[1].headline
        return f"cannot tell whether {which} matters: {why}", "unknown"
    which = f"{only} does not matter here"
    if not one:
        which = f"none of the {count} differences matters here"
    if new_remarks(reports):
        which = f"{only} changes no verdict; see the note"
        if not one:
            which = f"none of the {count} differences changes a verdict; see the note"
        return f"{_same_verdict(sides)}; {which}", "answered"
    limit = ""
    if frameworks and not all(side.was_run for side in sides):
        limit = ", judging by files only: the frameworks were not run"
    elif unknown:
        names = and_list([display_name(item.name) for item in unknown])
        limit = f", except perhaps to {names}, whose verdict is unknown"
    return f"{_same_verdict(sides)}; {which}{limit}", "answered"


def with_fewer_gpus(
    headline: str, standing: Standing, reports: tuple[Report, Report]
) -> tuple[str, Standing]:
    """The headline about the verdicts, and what they do not show."""
    fewer = fewer_gpus(reports)
    if not fewer or standing not in ("answered", "unknown"):
        return headline, standing
    return f"{headline}, but there {fewer}", "attention"


def fewer_gpus(reports: tuple[Report, Report]) -> str:
    """are 7 GPUs instead of 8; empty if there are as many as before, or none.

    Frameworks use those that are left, so it changes no verdict.
    """
    before, after = (report.snapshot.driver.gpus for report in reports)
    if not isinstance(before, Known) or not isinstance(after, Known):
        return ""
    if not 0 < len(after.value) < len(before.value):
        return ""
    left = "is 1 GPU" if len(after.value) == 1 else f"are {len(after.value)} GPUs"
    return f"{left} instead of {len(before.value)}"


def new_remarks(reports: tuple[Report, Report]) -> list[Finding]:
    """What only the second machine has and is no fault, but may matter: half of the power, say."""
    before = {(finding.code, finding.subject) for finding in reports[0].findings}
    return [
        finding
        for finding in reports[1].root_causes
        if finding.severity == "info" and (finding.code, finding.subject) not in before
    ]


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


_IS: dict[FrameworkVerdict, tuple[str, str]] = {
    "gpu": ("uses the GPU", "use the GPU"),
    "cpu": ("does not use the GPU", "do not use the GPU"),
    "broken": ("does not work", "do not work"),
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
    unknown = (
        ", judging by what is known of both" if not all(item.comparable for item in first) else ""
    )
    sets = {each for reason in explained for each in reason.sets}
    more = f"; and {len(sets) - 1} more, below" if len(sets) > 1 else ""
    left = "; not everything is explained" if len(explained) < len(reasons) else ""
    return f"because of {shown}{unknown}{more}{left}"


def _same_verdict(sides: tuple[Side, Side]) -> str:
    if sides[0].verdict != sides[1].verdict:
        return "the verdict on each framework is the same"
    return f"the verdict is the same ({sides[0].verdict})"


def _unclear_text(unclear: Sequence[FrameworkChange]) -> str:
    """What is known about frameworks that could be judged on one side only."""
    now = [item for item in unclear if item.after != "unknown"]
    if not now:
        names = and_list([display_name(item.name) for item in unclear])
        return f"cannot tell what changed for {names}, but"
    worst = max(now, key=lambda item: _RANKS.get(item.after, -1))
    alike = [item for item in now if item.after == worst.after]
    names = and_list([display_name(item.name) for item in alike])
    does, they = _IS[worst.after][len(alike) > 1], "they" if len(alike) > 1 else "it"
    return f"{names} {does} (whether {they} did before is unknown);"


def _why_unclear(unclear: Sequence[FrameworkChange], reports: tuple[Report, Report]) -> str:
    """Of the side that could not be judged."""
    report = reports[0] if unclear[0].before == "unknown" else reports[1]
    names = {item.name for item in unclear}
    unknown = [item for item in report.frameworks if item.name in names]
    return why_unknown(unknown) if unknown else report.headline
