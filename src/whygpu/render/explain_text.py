"""An explanation for people: the verdict first, then each root cause with its lines and its fix."""

from __future__ import annotations

from collections.abc import Mapping

from whygpu.model.explanation import STANDARD_ERROR, Explanation
from whygpu.model.finding import Evidence, Finding
from whygpu.model.standing import Standing
from whygpu.render.check_text import (
    STYLES,
    labelled,
    shortened,
    title,
    write_remedy,
)
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import BOLD, DIM, Page, sentence

_MOST_EVIDENCE = 5


def render(
    explanation: Explanation,
    *,
    width: int,
    color: bool,
    verbose: bool,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    page = Page(width, color)
    headline(page, explanation.standing, sentence(explanation.headline), marks)
    if explanation.name == STANDARD_ERROR:
        page.hanging("", "The numbers of lines are those of the program's standard error.", 2)
    if explanation.unread:
        page.hanging("", f"Not all of this log was read: {explanation.unread}.", 2)
    for number, root in enumerate(explanation.root_causes, 1):
        _root(page, number, root, explanation, verbose)
    _guidance(page, explanation)
    _unexplained(page, explanation)
    _beside(page, explanation, verbose)
    for error in explanation.crashed:
        page.line()
        page.paragraph(f"A bug in whygpu, please report it: {error}", STYLES["unknown"])
    if explanation.root_causes:
        page.line()
        page.line(f"Details: whygpu rule {explanation.root_causes[0].code}", DIM)
    return page.text()


def _root(page: Page, number: int, root: Finding, explanation: Explanation, verbose: bool) -> None:
    title(page, number, root, root.confidence)
    if number > 1:
        page.hanging("", root.message, 3)
    first = explanation.root_causes[0]
    # A cause that is only possible, after a likelier one, is shown in short: one fix.
    brief = not verbose and root.confidence == "possible" and first.confidence != "possible"
    if not brief or root.evidence != first.evidence:
        _evidence(page, root, verbose)
    if root.ask and (root is first or root.ask != first.ask):
        labelled(page, "ask", root.ask)
    for remedy in root.remedies[: 1 if brief else None]:
        write_remedy(page, remedy, explanation.installer)
    followers = [f for f in explanation.symptoms if f.explained_by == root.code]
    if followers:
        names = ", ".join(dict.fromkeys(f"{f.code} {f.cause}" for f in followers))
        labelled(page, "also", f"explains {names}")


def _guidance(page: Page, explanation: Explanation) -> None:
    """If no cause was found: what it could be, what would decide, what to do."""
    guidance = explanation.guidance
    if guidance is None or explanation.root_causes:
        return
    page.line()
    if guidance.candidates:
        labelled(page, "maybe", "; ".join(guidance.candidates))
    if guidance.ask:
        labelled(page, "ask", guidance.ask)
    for step in guidance.steps:
        write_remedy(page, step, explanation.installer, "next")


def _evidence(page: Page, finding: Finding, verbose: bool) -> None:
    shown = finding.evidence if verbose else finding.evidence[:_MOST_EVIDENCE]
    for evidence in shown:
        labelled(page, "seen", _quoted(evidence, verbose))
    if len(shown) < len(finding.evidence):
        labelled(page, "", f"... and {len(finding.evidence) - len(shown)} more (-v)")


def _place(evidence: Evidence) -> str:
    """The line of the log, which is named once above; for a fact of the machine, its source."""
    return evidence.where if evidence.line is None else f"line {evidence.line}"


def _quoted(evidence: Evidence, verbose: bool) -> str:
    text = f"{_place(evidence)}: {evidence.text}"
    return text if verbose else shortened(text)


def _unexplained(page: Page, explanation: Explanation) -> None:
    if not explanation.unexplained:
        return
    titles = {"not-gpu": "The lines that matter", "unknown": "Lines to look at"}
    page.section(titles.get(explanation.verdict, "Not explained"), BOLD)
    for evidence in explanation.unexplained:
        page.hanging("", _quoted(evidence, verbose=False), 2)


def _beside(page: Page, explanation: Explanation, verbose: bool) -> None:
    """Findings that are not the cause, and noise."""
    aside = [
        finding
        for finding in explanation.symptoms
        if finding.explained_by is None and (verbose or finding.confidence != "possible")
    ]
    if aside:
        page.section("Also seen, but not the cause", BOLD)
        for finding in aside:
            page.hanging("", f"{finding.code} {finding.cause}: {finding.message}", 2)
    if explanation.noise:
        page.section("Harmless", BOLD)
        for finding in sorted(explanation.noise, key=lambda noise: noise.evidence[0].line or 0):
            place = _place(finding.evidence[0])
            page.hanging("", f"{place}: {finding.message} ({finding.code})", 2)
            if verbose:
                _evidence(page, finding, verbose)
