"""The largest batch that fits, for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from whygpu.model.batch import BatchResult, GaugeName, Trial
from whygpu.model.codec import encode
from whygpu.model.derived import and_list, display_name
from whygpu.model.standing import Standing
from whygpu.model.units import size_text
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import GREEN, RED, Page

FIND_SCHEMA = 1
_KINDS: dict[GaugeName, str] = {
    "gpu": "GPU memory",
    "memory": "main memory",
    "address-space": "address space (ulimit -v)",
}
_SUGGESTED_MARGIN = 0.05
_FASTER = 1.05
LINES_OF_TRACEBACK = 12


def as_dict(result: BatchResult) -> dict[str, Any]:
    return {"schema": FIND_SCHEMA, **encode(result)}


def render_json(result: BatchResult) -> str:
    return json.dumps(as_dict(result), indent=2) + "\n"


def render(
    result: BatchResult, *, width: int, color: bool, marks: Mapping[Standing, str] = MARKS
) -> str:
    page = Page(width, color)
    headline(page, result.standing, summary(result), marks)
    page.hanging("", setting(result), 2)
    if result.trials:
        page.section("Tried" if shares_processes(result) else "Tried, each in its own process")
        _trials(page, result)
    remarks = [*remarks_on(result), *result.notes]
    if remarks or result.traceback:
        page.line()
    for text in remarks:
        page.hanging("-", text, 2)
    for line in result.traceback.rstrip().splitlines()[-LINES_OF_TRACEBACK:]:
        page.line(f"  {line}")
    return page.text()


def summary(result: BatchResult) -> str:
    name, batch = result.what, result.batch
    if result.outcome == "leaks":
        leak = next((trial.leak_bytes for trial in result.trials if trial.leak_bytes), 0)
        return (
            f"{name} leaks: each step keeps about {size_text(leak)} more, so no batch size is safe"
        )
    if result.outcome == "failed":
        return f"Cannot tell what fits: {name} failed, but not because memory ran out"
    if result.outcome == "nothing-fits":
        smallest = min(trial.batch for trial in result.trials)
        return f"Not even a batch of {smallest} fits"
    if batch is None:
        return f"Cannot tell what fits: {name} is too slow to try"
    if result.outcome == "too-slow":
        return f"A batch of {batch} fits; larger ones are too slow to try"
    if result.outcome == "unsettled":
        return f"A batch of {batch} fits; whether more fits is not settled"
    if result.margin:
        return f"Batch size {batch}, with {result.margin:.0%} of the memory left free"
    if result.outcome == "at-largest":
        return f"Batch size {batch}, the largest that was asked for, fits"
    return f"The largest batch that fits: {batch}"


def setting(result: BatchResult) -> str:
    versions = [f"{display_name(name)} {version}" for name, version in result.frameworks]
    parts = [result.what, f"on {result.device}"]
    if versions:
        parts.append(f"with {and_list(versions)}")
    text = " ".join(parts)
    if result.limit is not None and result.limit.limit is not None:
        text += f"; {_KINDS[result.limit.name]} {size_text(result.limit.limit)}"
    return text


def _trials(page: Page, result: BatchResult) -> None:
    page.line(f"   {'batch':>7}  {'memory':>9}  {'a step':>9}  {'samples/s':>9}")
    shares = shares_processes(result)
    for trial in result.trials:
        # The figures of a failed trial mean nothing, and its reason needs their columns.
        cells = "".join(f"{cell:>9}  " for cell in figures(trial, result))
        row = f"   {trial.batch:>7}  " + (cells if is_measured(trial) else "")
        words = outcome_words(trial, shares=shares)
        page.hanging(row, words, len(row), GREEN if trial.outcome == "fits" else RED)


def is_measured(trial: Trial) -> bool:
    return trial.outcome in ("fits", "leaks")


def outcome_words(trial: Trial, *, shares: bool) -> str:
    """`shares`: several trials ran in one process."""
    words = "fits" if trial.outcome == "fits" else _why_not(trial)
    return f"in a new process: {words}" if shares and trial.alone else words


def shares_processes(result: BatchResult) -> bool:
    """Whether several trials ran in one process."""
    return not all(trial.alone for trial in result.trials)


def figures(trial: Trial, result: BatchResult) -> tuple[str, str, str]:
    """Memory, time and rate, where they are known."""
    held = trial.gauge(result.limit.name) if result.limit is not None else None
    step, rate = trial.step_seconds, trial.samples_per_second
    return (
        size_text(held.peak) if held is not None else "",
        _seconds(step) if step else "",
        _rate(rate) if rate else "",
    )


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _rate(rate: float) -> str:
    return f"{rate:.3g}" if rate < 1000 else f"{rate:.0f}"


def _why_not(trial: Trial) -> str:
    results = {"does-not-fit": "does not fit: ", "failed": "failed: ", "too-slow": "too slow: "}
    words = " ".join(trial.how.split())
    return results.get(trial.outcome, "") + (words if len(words) < 160 else f"{words[:157]}...")


def remarks_on(result: BatchResult) -> list[str]:
    found = []
    if result.cached:
        found.append("This is a remembered result; --no-cache searches again.")
    found += _bracket(result)
    found += _numbers_where_nothing_fits(result)
    found += _speed(result)
    if result.outcome == "found" and not result.margin:
        found.append(
            "It fits exactly, but longer inputs, validation and other programs need memory too; "
            f"--margin {_SUGGESTED_MARGIN:.0%} leaves some."
        )
    return found


def _bracket(result: BatchResult) -> list[str]:
    low, high = result.largest_run, result.smallest_not
    if low is None and result.outcome == "too-slow":
        return ["--timeout gives a trial more time, --start 1 begins with the smallest batch."]
    if low is None or result.outcome in ("leaks", "failed", "at-largest"):
        return []
    if result.outcome == "too-slow":
        return [f"{low} ran. Whether more fits is not known: --timeout gives a trial more time."]
    if high is not None and high - low <= 1:
        return [f"{low} ran, {high} did not."]
    if high is not None:
        return [f"{low} ran, {high} did not: the true maximum is {low} or between the two."]
    if result.forecast is not None:
        at = result.forecast
        return [f"{low} ran. Judging by the trials, the limit is reached at about {at}."]
    return [f"{low} ran. Whether more fits was not tried."]


def _numbers_where_nothing_fits(result: BatchResult) -> list[str]:
    if result.outcome != "nothing-fits":
        return []
    held = result.limit
    text = "The model alone, or what one sample needs, is too much"
    if held is None or held.limit is None:
        return [f"{text}."]
    return [
        f"{text}: {size_text(held.before)} were in use before the first step, "
        f"{size_text(held.peak)} at its end, and the limit is {size_text(held.limit)}."
    ]


def _speed(result: BatchResult) -> list[str]:
    fastest = result.fastest
    largest = next((each for each in result.trials if each.batch == result.largest_run), None)
    if fastest is None or largest is None or not largest.samples_per_second:
        return []
    best, rate = fastest.samples_per_second or 0.0, largest.samples_per_second
    if best < _FASTER * rate:
        return []
    return [
        f"The largest batch is not the fastest: {fastest.batch} does {_rate(best)} samples a "
        f"second, {largest.batch} does {_rate(rate)}."
    ]
