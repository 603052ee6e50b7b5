"""Past runs for people, and what changed since the last good one."""

from __future__ import annotations

import calendar
import time

from whygpu.model.derived import and_list
from whygpu.model.differences import DiffAnswer
from whygpu.model.history import History, PastRun, SinceGood
from whygpu.model.shell import quoted
from whygpu.model.units import size_text
from whygpu.render.check_text import STYLES, shortened
from whygpu.render.text_page import BOLD, DIM, Page, column_widths, padded

_MONTHS = ("", *calendar.month_name[1:])
_MOST_NAMED = 5
_ELSEWHERE = "on another machine or in another container"


def render(history: History, *, width: int, color: bool) -> str:
    page = Page(width, color)
    state = "Each check and run is recorded" if history.recording else "Recording is off"
    switch = "off" if history.recording else "on"
    page.paragraph(f"{state} (`whygpu history {switch}` changes that).")
    page.paragraph(_kept(history), DIM)
    if history.runs:
        page.line()
    rows = [
        (str(run.number), when(run.at), run.verb, run.verdict, "good" if run.good else "")
        for run in history.runs
    ]
    several = len({run.target for run in history.runs}) > 1
    widths = column_widths(rows) if rows else []
    indent = sum(widths) + 2 * len(widths)
    for row, run in zip(rows, history.runs, strict=True):
        text = f"{run.program}: {run.summary}" if run.program else run.summary
        if several and run.target:
            text += f", in {run.target}"
        if not run.here:
            text += ", on another machine"
        label = "  ".join(map(padded, row, widths))
        page.hanging(label, shortened(text), indent, mark=STYLES.get(run.verdict, ""))
    return page.text()


def _kept(history: History) -> str:
    if not history.recorded:
        return f"There is no record in {history.place}."
    records = "1 record" if history.recorded == 1 else f"{history.recorded} records"
    return f"{records} in {history.place}, {size_text(history.size_bytes)}."


def when(at: str) -> str:
    """11 November, 09:30, in the user's own time; with the year if it is another one."""
    try:
        seconds = calendar.timegm(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ"))
        there, here = time.localtime(seconds), time.localtime()
    except (ValueError, OverflowError, OSError):
        return at
    year = "" if there.tm_year == here.tm_year else f" {there.tm_year}"
    return f"{there.tm_mday} {_MONTHS[there.tm_mon]}{year}, {there.tm_hour:02}:{there.tm_min:02}"


def render_since(since: SinceGood, *, width: int, color: bool) -> str:
    """The last good run, and what changed since then."""
    page = Page(width, color)
    page.paragraph(_sentence(since), BOLD)
    for places, codes in _codes_by_set(since.answer).items():
        items = [since.answer.differences[place] for place in places]
        named = and_list([f"{item.title} ({item.values})" for item in items])
        verb = "appears" if len(codes) == 1 else "appear"
        page.item(f"{named}: with it, {and_list(codes)} {verb}" if codes else named)
    return page.text()


def _codes_by_set(answer: DiffAnswer) -> dict[tuple[int, ...], list[str]]:
    """What explains a fault, each once, with all codes: one package can break several others."""
    found: dict[tuple[int, ...], list[str]] = {}
    for reason in answer.reasons:
        for each in reason.sets if reason.present == "after" else ():
            codes = found.setdefault(each, [])
            if reason.finding is not None and reason.finding.code not in codes:
                codes.append(reason.finding.code)
    return found


def _sentence(since: SinceGood) -> str:
    run, answer = since.run, since.answer
    what = f"good run of {run.program}" if run.program else f"good {run.verb}"
    last = f"The last {what} was on {when(run.at)}"
    if not run.here:
        last += f", {_ELSEWHERE}"
    if not answer.differences:
        end = "has changed since then" if run.here else "is different here"
        return f"{last}; nothing that whygpu compares {end}."
    explained = any(reason.sets for reason in answer.reasons if reason.present == "after")
    if explained:
        changed = "Since then, this has changed" if run.here else "This is different here"
        return f"{last}. {changed}, and it is the reason:"
    words = "Since then" if run.here else "Different here"
    return f"{last}. {words}: {_changed(answer)}. It does not show why. {_more(run)}"


def _changed(answer: DiffAnswer) -> str:
    items = [item for item in answer.differences if item.comparable and item.kind != "moment"]
    shown = [f"{item.title} ({item.values})" for item in items[:_MOST_NAMED]]
    if len(items) > len(shown):
        shown.append(f"{len(items) - len(shown)} more")
    return and_list(shown) or "only free memory and processes differ"


def _more(run: PastRun) -> str:
    # Not the active environment, which diff takes by itself: the one that was checked.
    environment = f" {quoted(run.target)}" if run.target else ""
    return (
        f"More: `whygpu history export {run.number} > good.json`, "
        f"`whygpu diff good.json{environment}`"
    )
