"""An explanation for people: the verdict first, then each root cause with its lines and its fix."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from whygpu.model.explanation import Explanation
from whygpu.model.finding import Evidence, Finding
from whygpu.model.standing import Standing
from whygpu.render.check_text import (
    STYLES,
    console_of,
    hanging,
    labelled,
    paragraph,
    print_remedy,
    shortened,
    text_of,
)
from whygpu.render.marks import MARKS

_VERDICTS = {"found": "error", "nothing-wrong": "gpu", "not-gpu": "warning", "unknown": "unknown"}
_MOST_EVIDENCE = 5


def render(
    explanation: Explanation,
    *,
    width: int,
    color: bool,
    verbose: bool,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    console = console_of(width, color)
    with console.capture() as captured:
        _headline(console, explanation, marks[explanation.standing])
        for number, root in enumerate(explanation.root_causes, 1):
            _root(console, number, root, explanation, verbose)
        _guidance(console, explanation)
        _unexplained(console, explanation)
        _beside(console, explanation, verbose)
        _crashed(console, explanation)
        if explanation.root_causes:
            code = explanation.root_causes[0].code
            console.print()
            console.print(Text(f"More about it: whygpu rule {code}", "dim"))
    return text_of(captured.get())


def _headline(console: Console, explanation: Explanation, mark: str) -> None:
    sentence = explanation.headline[:1].upper() + explanation.headline[1:]
    style = STYLES[_VERDICTS[explanation.verdict]]
    console.print(hanging(mark, Text(sentence, style), 2))
    if explanation.unread:
        note = f"Not all of this log was read: {explanation.unread}."
        console.print(hanging("", Text(note), 2))


def _root(
    console: Console, number: int, root: Finding, explanation: Explanation, verbose: bool
) -> None:
    title = Text.assemble(
        (f"{root.code} {root.cause}", STYLES[root.severity]), f"  {root.confidence}"
    )
    console.print()
    console.print(hanging(f"{number}.", title, 3))
    if number > 1:
        paragraph(console, root.message)
    first = explanation.root_causes[0]
    # What is only possible beside something likelier is told in short: one fix, the same question.
    brief = not verbose and root.confidence == "possible" and first.confidence != "possible"
    if not brief or root.evidence != first.evidence:
        _evidence(console, root, verbose)
    if root.ask and (root is first or root.ask != first.ask):
        console.print(labelled("ask", root.ask))
    for remedy in root.remedies[: 1 if brief else None]:
        print_remedy(console, remedy, explanation.installer)
    followers = [f for f in explanation.symptoms if f.explained_by == root.code]
    if followers:
        names = ", ".join(dict.fromkeys(f"{f.code} {f.cause}" for f in followers))
        console.print(labelled("so", f"explains {names}"))


def _guidance(console: Console, explanation: Explanation) -> None:
    """Where there is no cause to tell: what it could be, what would decide, what to do."""
    guidance = explanation.guidance
    if guidance is None or explanation.root_causes:
        return
    console.print()
    if guidance.candidates:
        console.print(labelled("maybe", "; ".join(guidance.candidates)))
    if guidance.ask:
        console.print(labelled("ask", guidance.ask))
    for step in guidance.steps:
        print_remedy(console, step, explanation.installer, "next")


def _evidence(console: Console, finding: Finding, verbose: bool) -> None:
    shown = finding.evidence if verbose else finding.evidence[:_MOST_EVIDENCE]
    for evidence in shown:
        console.print(labelled("seen", _quoted(evidence, verbose)))
    if len(shown) < len(finding.evidence):
        console.print(labelled("", f"... and {len(finding.evidence) - len(shown)} more (-v)"))


def _place(evidence: Evidence) -> str:
    """The file is named above all; what the machine itself says comes with its own source."""
    return evidence.where if evidence.line is None else f"line {evidence.line}"


def _quoted(evidence: Evidence, verbose: bool) -> str:
    text = f"{_place(evidence)}: {evidence.text}"
    return text if verbose else shortened(text)


def _unexplained(console: Console, explanation: Explanation) -> None:
    if not explanation.unexplained:
        return
    console.print()
    titles = {"not-gpu": "The lines that matter:", "unknown": "Lines to look at:"}
    console.print(Text(titles.get(explanation.verdict, "Not accounted for:"), "bold"))
    for evidence in explanation.unexplained:
        console.print(_item(_quoted(evidence, verbose=False)))


def _beside(console: Console, explanation: Explanation, verbose: bool) -> None:
    """What is true and does not matter here, and what is only noise."""
    aside = [
        finding
        for finding in explanation.symptoms
        if finding.explained_by is None and (verbose or finding.confidence != "possible")
    ]
    if aside:
        console.print()
        console.print(Text("True, and beside the point:", "bold"))
        for finding in aside:
            console.print(_item(f"{finding.code} {finding.cause}: {finding.message}"))
    if explanation.noise:
        console.print()
        console.print(Text("Harmless:", "bold"))
        for finding in sorted(explanation.noise, key=lambda noise: noise.evidence[0].line or 0):
            place = _place(finding.evidence[0])
            summary = finding.message if verbose else finding.message.partition(";")[0]
            console.print(_item(f"{place}: {summary} ({finding.code})"))
            if verbose:
                _evidence(console, finding, verbose)


def _item(text: str) -> Table:
    return hanging("", Text(text), 2)


def _crashed(console: Console, explanation: Explanation) -> None:
    for error in explanation.crashed:
        console.print()
        console.print(Text(f"A bug in whygpu, please report it: {error}", STYLES["unknown"]))
