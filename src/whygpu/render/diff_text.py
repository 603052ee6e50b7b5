"""What changed, for people: first what explains the verdict, then the rest in a few words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from whygpu.model.derived import and_list, display_name
from whygpu.model.differences import DiffAnswer, Difference, Reason, Side
from whygpu.model.finding import MACHINE
from whygpu.model.standing import Standing
from whygpu.render.check_text import shortened
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import BOLD, CYAN, DIM, Page, column_widths, padded, sentence

PLAIN_SIGNS = {ord("→"): "->"}
"""For a terminal that cannot show the arrow."""

_PLURALS = {
    "package": ("package", "packages"),
    "variable": ("variable", "variables"),
    "library": ("library", "libraries"),
    "device-node": ("device file", "device files"),
    "toolkit": ("CUDA toolkit", "CUDA toolkits"),
}
"""Kinds that are counted; differences of other kinds are named."""


def render(
    answer: DiffAnswer,
    *,
    width: int,
    color: bool,
    verbose: bool,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    page = Page(width, color)
    headline(page, answer.standing, sentence(answer.headline), marks)
    for label, side in (("before", answer.before), ("after", answer.after)):
        page.hanging(f"  {label}", side_text(side), 10)
    _frameworks(page, answer)
    for number, reason in enumerate(answer.reasons, 1):
        _reason(page, number, reason, answer)
    _rest(page, answer, verbose)
    for note in answer.notes:
        page.line()
        page.paragraph(f"Note: {note}.")
    if verbose:
        page.line()
        page.paragraph(f"Machines that were put together and judged: {answer.trials:,}.", DIM)
    return page.text()


def side_text(side: Side) -> str:
    run = "" if side.was_run else ", frameworks not run"
    return f"{side.name} ({side.taken}{run}): {shortened(side.headline)}"


def _frameworks(page: Page, answer: DiffAnswer) -> None:
    rows = [
        (
            display_name(item.name),
            item.before if item.before == item.after else f"{item.before} → {item.after}",
        )
        for item in answer.frameworks
    ]
    if not rows:
        return
    page.line()
    widths = column_widths(rows)
    for row in rows:
        page.line(
            "  " + "  ".join(map(padded, row, widths)).rstrip(), BOLD if "→" in row[1] else ""
        )


def _reason(page: Page, number: int, reason: Reason, answer: DiffAnswer) -> None:
    page.line()
    page.hanging(f"{number}.", reason_title(reason), 3, BOLD, CYAN)
    if reason.finding is not None:
        page.hanging("", reason.finding.message, 3)
    if not reason.sets:
        _unexplained(page, reason, answer)
        return
    for order, each in enumerate(reason.sets):
        label = "because" if order == 0 else "or"
        items = [answer.differences[place] for place in each]
        for item in items:
            page.hanging(f"   {label}", f"{item.title}: {values_text(item)}", 11, mark=BOLD)
            label = "and"
    page.hanging("", tried_text(reason, answer), 3, DIM)


def reason_title(reason: Reason) -> str:
    verb = "New" if reason.present == "after" else "Gone"
    finding = reason.finding
    if finding is None:
        names = and_list([display_name(name) for name in reason.frameworks])
        return f"{verb}: the verdict on {names}"
    about: str = finding.severity
    if finding.subject != MACHINE:
        about += f", {display_name(finding.subject)}"
    return f"{verb}: {finding.code} {finding.cause} ({about})"


def values_text(item: Difference) -> str:
    return item.values if item.comparable else f"{item.values} (checked on one side only)"


def tried_text(reason: Reason, answer: DiffAnswer) -> str:
    """What the trials have shown."""
    good = answer.before if reason.present == "after" else answer.after
    first = reason.sets[0]
    if len(reason.sets) > 1:
        what = "Each of them is enough by itself"
    elif len(first) > 1:
        what = "They are enough together, and no part of them is"
    else:
        what = "This alone is enough"
    run = ", with what the frameworks did there" if reason.basis == "run" else ""
    rest = ""
    if reason.certainly_all and len(answer.differences) > len(answer.explaining):
        rest = " Everything else that differs, put in together, does not show it."
    elif not reason.certainly_all:
        rest = " There may be more that is enough: the search was ended."
    return f"{what}: put into {good.name}{run}, the fault appears.{rest}"


def _unexplained(page: Page, reason: Reason, answer: DiffAnswer) -> None:
    page.hanging("", f"Cannot tell which difference it is: {reason.unexplained}.", 3)
    if reason.suspects:
        page.hanging("", "What changed and could have to do with it:", 3)
    for place in reason.suspects:
        item = answer.differences[place]
        page.item(f"{item.title}: {values_text(item)}")


def _rest(page: Page, answer: DiffAnswer, verbose: bool) -> None:
    named = answer.explaining.union(*(reason.suspects for reason in answer.reasons))
    rest = [item for place, item in enumerate(answer.differences) if place not in named]
    compared = [item for item in rest if item.comparable]
    unknown = [item for item in rest if not item.comparable]
    if compared:
        page.line()
        count = f"{len(compared)} other difference{'s' if len(compared) > 1 else ''}"
        if not named:
            count = f"{len(compared)} difference{'s' if len(compared) > 1 else ''}"
        end = (
            ":" if verbose else f" ({_counted(compared)}).{_whether_they_matter(answer, compared)}"
        )
        page.paragraph(f"{count}{end}" + ("" if verbose else " List: -v"))
        _list(page, compared, verbose)
    if unknown:
        page.line()
        page.paragraph(
            f"Checked on one side only, so it is unknown whether it changed: {_counted(unknown)}"
            + (":" if verbose else ". List: -v")
        )
        _list(page, unknown, verbose)


def _list(page: Page, items: Sequence[Difference], verbose: bool) -> None:
    for item in items if verbose else ():
        page.item(f"{item.title}: {item.values}")


def _whether_they_matter(answer: DiffAnswer, rest: Sequence[Difference]) -> str:
    """What the trials say about all others. They are about the reasons only: a framework that came
    or went, or whose verdict is unknown, is no part of them."""
    if not answer.reasons or not all(
        reason.sets and reason.certainly_all for reason in answer.reasons
    ):
        return ""
    judged = all(
        item.after != "unknown" and "not-installed" not in (item.before, item.after)
        for item in answer.frameworks
    )
    if not judged:
        return " It does not explain it." if len(rest) == 1 else " None of them explains it."
    return " It does not matter here." if len(rest) == 1 else " None of them matters here."


def _counted(items: Sequence[Difference]) -> str:
    """38 packages, 2 variables, the kernel and the free main memory."""
    counts = Counter(item.kind for item in items)
    words = []
    for kind, count in counts.items():
        if kind in _PLURALS:
            words.append(f"{count} {_PLURALS[kind][count > 1]}")
        else:
            words += [item.title for item in items if item.kind == kind]
    if len(words) > 8:
        words = [*words[:7], f"{len(words) - 7} more"]
    return and_list(words)
