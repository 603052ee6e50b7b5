"""The answer of `whygpu explain`: what a log means, with the lines that show it."""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.explanation import STANDARD_ERROR, Explanation
from whygpu.model.finding import Finding
from whygpu.render.html.findings import in_short, place, remedies, root_cause
from whygpu.render.html.markup import Child, Html, code, join, p
from whygpu.render.html.parts import Section, Sheet, facts, folded, items, sections
from whygpu.render.text_page import sentence

_UNEXPLAINED = {"not-gpu": "The lines that matter", "unknown": "Lines to look at"}


def sheet(explanation: Explanation) -> Sheet:
    return Sheet(
        "explain",
        explanation.standing,
        sentence(explanation.headline),
        tuple(_about(explanation)),
        None,
        sections_of(explanation),
    )


def sections_of(explanation: Explanation) -> tuple[Section, ...]:
    """Without the headline, for the page of a run."""
    title = _UNEXPLAINED.get(explanation.verdict, "Not explained")
    return sections(
        ("What to do", [*_roots(explanation), *_guidance(explanation)]),
        (title, facts((place(line), code(line.text)) for line in explanation.unexplained)),
        ("Also seen, but not the cause", in_short(_aside(explanation))),
        ("Harmless", _noise(explanation)),
        ("A bug in whygpu, please report it", items(explanation.crashed)),
    )


def _about(explanation: Explanation) -> Iterator[str]:
    if explanation.name:
        yield explanation.name
    count = explanation.lines_read
    if count:
        yield f"{count:,} {'line' if count == 1 else 'lines'} read"
    if explanation.name == STANDARD_ERROR:
        yield "numbers of lines are those of the program's standard error"
    if explanation.unread:
        yield f"not all of this log was read: {explanation.unread}"


def _roots(explanation: Explanation) -> Iterator[Html]:
    for number, root in enumerate(explanation.root_causes):
        followers = [each for each in explanation.symptoms if each.explained_by == root.code]
        # The headline is the message of the first.
        yield root_cause(root, explanation.installer, followers, message=number > 0)


def _guidance(explanation: Explanation) -> Iterator[Html | None]:
    """If no cause was found: what it could be, what would decide, what to do."""
    guidance = explanation.guidance
    if guidance is None or explanation.root_causes:
        return
    if guidance.candidates:
        yield p("It could be: ", "; ".join(guidance.candidates))
    if guidance.ask:
        yield p("What would decide it: ", guidance.ask)
    yield remedies(guidance.steps, explanation.installer, "next")


def _aside(explanation: Explanation) -> list[Finding]:
    return [each for each in explanation.symptoms if each.explained_by is None]


def _noise(explanation: Explanation) -> Html | None:
    if not explanation.noise:
        return None
    ordered = sorted(explanation.noise, key=lambda each: each.evidence[0].line or 0)
    lines: list[Child] = [
        join(f"{place(each.evidence[0])}: {each.message} ", code(each.code)) for each in ordered
    ]
    title = f"Lines that look like a problem, and are none: {len(lines):,}"
    return folded(title, items(lines))
