"""The report for people: the verdict first, then each root cause with its evidence and its fix."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from whygpu.model.commands import remedy_text, shell_text
from whygpu.model.derived import display_name, installer_of
from whygpu.model.finding import MACHINE, Finding, Remedy
from whygpu.model.report import STATUSES, Outcome, Report
from whygpu.model.standing import Standing
from whygpu.model.target import Installer
from whygpu.render.marks import MARKS

STYLES = {
    "gpu": "bold green",
    "no-gpu": "bold green",
    "cpu": "bold red",
    "broken": "bold red",
    "unknown": "bold yellow",
    "error": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
}
HEADLINE_STYLES: dict[Standing, str] = {
    "fine": "bold green",
    "attention": "bold yellow",
    "wrong": "bold red",
    "unknown": "bold yellow",
}
_MOST_EVIDENCE = 6
_LONGEST_EVIDENCE = 360
"""More evidence than this, and longer, is for -v."""
_LONGEST_SUMMARY = 200
_NARROWEST_REASON = 32
"""The columns for a reason, and for the code and the blanks before it."""


def render(
    report: Report,
    *,
    width: int,
    color: bool,
    verbose: bool,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    console = console_of(width, color)
    with console.capture() as captured:
        _headline(console, report, marks[report.standing])
        _frameworks(console, report, verbose)
        for number, root in enumerate(report.root_causes, 1):
            _root(console, number, root, report, verbose)
        _undetermined(console, report, verbose)
        if verbose:
            _outcomes(console, report.outcomes)
        _summary(console, report, verbose)
    return text_of(captured.get())


def console_of(width: int, color: bool) -> Console:
    """A console that prints nowhere: what it captures is the answer."""
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def text_of(captured: str) -> str:
    return "\n".join(line.rstrip() for line in captured.splitlines()) + "\n"


def _headline(console: Console, report: Report, mark: str) -> None:
    sentence = report.headline[:1].upper() + report.headline[1:]
    console.print(hanging(mark, Text(sentence, HEADLINE_STYLES[report.standing]), 2))


def _frameworks(console: Console, report: Report, verbose: bool) -> None:
    if not report.frameworks:
        return
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for item in report.frameworks:
        because = f" [{', '.join(item.because)}]" if item.because else ""
        table.add_row(
            display_name(item.name),
            item.version,
            Text(item.verdict, STYLES[item.verdict]),
            Text(
                (item.summary if verbose else shortened(item.summary, _LONGEST_SUMMARY)) + because
            ),
        )
    console.print()
    console.print(Padding(table, (0, 0, 0, 2)))


def _root(console: Console, number: int, root: Finding, report: Report, verbose: bool) -> None:
    title = Text.assemble(
        (f"{root.code} {root.cause}", STYLES[root.severity]),
        f"  {root.severity}",
        "" if root.subject == MACHINE else f", {display_name(root.subject)}",
        "" if root.confidence == "certain" else f", {root.confidence}",
    )
    console.print()
    console.print(hanging(f"{number}.", title, 3))
    paragraph(console, root.message)
    shown = root.evidence if verbose else root.evidence[:_MOST_EVIDENCE]
    for evidence in shown:
        text = f"{evidence.where}: {evidence.text}"
        console.print(labelled("seen", text if verbose else shortened(text)))
    if len(shown) < len(root.evidence):
        console.print(labelled("", f"... and {len(root.evidence) - len(shown)} more (-v)"))
    for remedy in root.remedies:
        print_remedy(console, remedy, installer_of(report.snapshot))
    followers = [f for f in report.findings if f.explained_by == root.code]
    names = dict.fromkeys(f"{f.code} {f.cause} ({display_name(f.subject)})" for f in followers)
    if names:
        console.print(labelled("so", f"explains {', '.join(names)}"))


def _undetermined(console: Console, report: Report, verbose: bool) -> None:
    if not report.undetermined:
        return
    left_out = report.snapshot.probes_left_out
    reasons: dict[str, list[str]] = {}
    for outcome in report.undetermined:
        for reason in outcome.reasons:
            # What only running them could tell has one reason, whatever each cause calls it.
            unrun = left_out and left_out in reason and not verbose
            told = f"what running the frameworks would show: {left_out}" if unrun else reason
            codes = reasons.setdefault(told, [])
            if outcome.code not in codes:
                codes.append(outcome.code)
    console.print()
    console.print(Text("Could not tell:", STYLES["unknown"]))
    for reason, codes in reasons.items():
        shown = codes if verbose or len(codes) <= 3 else [*codes[:3], f"and {len(codes) - 3} more"]
        console.print(Padding(Text(f"{reason} ({', '.join(shown)})"), (0, 0, 0, 3)))


def _outcomes(console: Console, outcomes: Sequence[Outcome]) -> None:
    """One after the other, in columns where the console has room for them."""
    longest_cause = max((len(outcome.cause) for outcome in outcomes), default=0)
    longest_status = max((len(outcome.status) for outcome in outcomes), default=0)
    width = console.width
    in_columns = width >= longest_cause + longest_status + _NARROWEST_REASON
    console.print()
    for outcome in outcomes:
        label = f"  {outcome.code}  "
        words = [outcome.cause, outcome.status, *outcome.reasons[:1]]
        if in_columns:
            label += f"{outcome.cause:{longest_cause}}  {outcome.status:{longest_status}}  "
            words = words[2:]
        body = "  ".join(words)
        line = (label + body).rstrip()
        fits = len(line) <= width and "\n" not in line
        console.print(Text(line) if fits else hanging(label, Text(body), len(label)))


def _summary(console: Console, report: Report, verbose: bool) -> None:
    counts = Counter(outcome.status for outcome in report.outcomes)
    parts = [
        f"{counts[status]} {status.replace('-', ' ')}" for status in STATUSES if counts[status]
    ]
    console.print()
    console.print(Text(f"{len(report.outcomes)} causes looked at: {', '.join(parts)}.", "dim"))
    if report.root_causes:
        more = "" if verbose else "; all outcomes: whygpu check -v"
        console.print(
            Text(f"More about one: whygpu rule {report.root_causes[0].code}{more}", "dim")
        )


def print_remedy(
    console: Console, remedy: Remedy, installer: Installer, label: str = "fix"
) -> None:
    console.print(labelled(label, remedy_text(remedy, installer)))
    command = shell_text(remedy.action, installer)
    if command is not None:
        # Not wrapped: a command has to survive copy and paste.
        console.print(Text(f"          {command}", "bold"), soft_wrap=True)


def shortened(text: str, longest: int = _LONGEST_EVIDENCE) -> str:
    return text if len(text) <= longest else f"{text[:longest]} ... (-v)"


def paragraph(console: Console, text: str) -> None:
    console.print(Padding(Text(text), (0, 0, 0, 3)))


def labelled(label: str, text: str) -> Table:
    return hanging(f"   {label}", Text(text), 10)


def hanging(label: str, body: Text, indent: int) -> Table:
    """A label with the text beside it, so that wrapped lines start under the text."""
    table = Table.grid()
    table.add_column(width=indent, no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    table.add_row(label, body)
    return table
