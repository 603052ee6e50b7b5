"""The report for people: the verdict first, then each root cause with its evidence and its fix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from whygpu.model.commands import remedy_text, shell_text
from whygpu.model.derived import display_name, installer_of
from whygpu.model.finding import MACHINE, Evidence, Finding, Remedy
from whygpu.model.observed import Known
from whygpu.model.report import STATUSES, Outcome, Report
from whygpu.model.snapshot import Snapshot
from whygpu.model.standing import Standing
from whygpu.model.target import Installer
from whygpu.render.examined import examined
from whygpu.render.load_text import load_words
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import (
    BOLD,
    CYAN,
    DIM,
    GREEN,
    RED,
    YELLOW,
    Page,
    cells,
    column_widths,
    padded,
    sentence,
)

STYLES = {
    "gpu": f"{BOLD};{GREEN}",
    "no-gpu": f"{BOLD};{GREEN}",
    "cpu": f"{BOLD};{RED}",
    "broken": f"{BOLD};{RED}",
    "unknown": f"{BOLD};{YELLOW}",
    "error": f"{BOLD};{RED}",
    "warning": f"{BOLD};{YELLOW}",
    "info": CYAN,
}
_MOST_EVIDENCE = 6
_MOST_FROM_ONE_PLACE = 2
_LONGEST_EVIDENCE = 360
"""Evidence beyond these limits is shown with -v only."""
_LONGEST_SUMMARY = 200
_NARROWEST_TEXT = 20
"""Columns for a summary; with fewer, it is placed below its framework."""
_NARROWEST_REASON = 32
"""Columns for a reason, with the code and the spaces before it."""
_INDENT = 3
_TEXT_INDENT = 10
"""Of the text beside labels such as "seen" and "fix"."""


def render(
    report: Report,
    *,
    width: int,
    color: bool,
    verbose: bool,
    by_default: bool = False,
    marks: Mapping[Standing, str] = MARKS,
) -> str:
    """`by_default`: the user did not say which interpreter to examine."""
    page = Page(width, color)
    headline(page, report.standing, sentence(report.headline), marks)
    _describe_machine(page, report, by_default)
    _frameworks(page, report, verbose)
    for number, root in enumerate(report.root_causes, 1):
        _root(page, number, root, report, verbose)
    _under_load(page, report.snapshot)
    _undetermined(page, report, verbose)
    if verbose:
        _outcomes(page, report.outcomes)
    _summary(page, report, verbose)
    return page.text()


def _describe_machine(page: Page, report: Report, by_default: bool) -> None:
    """What was examined: the interpreter, the driver and the GPU."""
    page.hanging("", examined(report.snapshot), 2)
    introduction = _other_environment(report) if by_default else ""
    if introduction:
        page.hanging("", f"{introduction}: whygpu check --python FOLDER", 2)


def _other_environment(report: Report) -> str:
    """If the user's program may run in another environment, how to introduce that one."""
    interpreter = report.snapshot.target.interpreter
    if isinstance(interpreter, Known) and not interpreter.value.isolated:
        return "This Python belongs to no environment. To examine another one"
    return "" if report.frameworks else "If your framework is in another environment"


def _frameworks(page: Page, report: Report, verbose: bool) -> None:
    if not report.frameworks:
        return
    page.line()
    rows = [(display_name(item.name), item.version, item.verdict) for item in report.frameworks]
    widths = column_widths(rows)
    indent = 2 + sum(widths) + 2 * len(widths)
    for row, item in zip(rows, report.frameworks, strict=True):
        because = f" [{', '.join(item.because)}]" if item.because else ""
        text = (item.summary if verbose else shortened(item.summary, _LONGEST_SUMMARY)) + because
        style = STYLES[item.verdict]
        if page.width - indent >= _NARROWEST_TEXT:
            label = "  ".join(map(padded, row, widths))
            page.hanging(f"  {label}", text, indent, mark=style)
        else:
            page.hanging("", "  ".join(row), 2, style)
            page.hanging("", text, 4)


def _root(page: Page, number: int, root: Finding, report: Report, verbose: bool) -> None:
    about: str = root.severity
    if root.subject != MACHINE:
        about += f", {display_name(root.subject)}"
    if root.confidence != "certain":
        about += f", {root.confidence}"
    title(page, number, root, about)
    page.hanging("", root.message, _INDENT)
    shown = root.evidence if verbose else _telling(root.evidence)
    for evidence in shown:
        text = f"{evidence.where}: {evidence.text}"
        labelled(page, "seen", text if verbose else shortened(text))
    if len(shown) < len(root.evidence):
        labelled(page, "", f"... and {len(root.evidence) - len(shown)} more (-v)")
    for remedy in root.remedies:
        write_remedy(page, remedy, installer_of(report.snapshot))
    followers = [f for f in report.findings if f.explained_by == root.code]
    names = dict.fromkeys(f"{f.code} {f.cause} ({display_name(f.subject)})" for f in followers)
    if names:
        labelled(page, "also", f"explains {', '.join(names)}")


def _telling(evidence: Sequence[Evidence]) -> list[Evidence]:
    """The first ones, but few from one place: they mostly repeat it for another library or GPU."""
    places = Counter[str]()
    shown = []
    for item in evidence:
        places[item.where] += 1
        if places[item.where] <= _MOST_FROM_ONE_PLACE:
            shown.append(item)
    return shown[:_MOST_EVIDENCE]


def title(page: Page, number: int, root: Finding, about: str) -> None:
    page.line()
    text = f"{root.code} {root.cause}  {about}"
    page.hanging(f"{number}.", text, _INDENT, STYLES[root.severity])


def _under_load(page: Page, machine: Snapshot) -> None:
    found = load_words(machine)
    if found:
        page.section("Under load")
    for gpu in found:
        page.hanging(f"{' ' * _INDENT}{gpu.gpu}", gpu.about, _TEXT_INDENT)
        widths = column_widths(gpu.rows)
        for row in gpu.rows:
            columns = "  ".join(map(padded, row, widths))
            page.hanging("", columns.rstrip(), _TEXT_INDENT)
        for text in gpu.not_measured:
            page.hanging("", text, _TEXT_INDENT)


def _undetermined(page: Page, report: Report, verbose: bool) -> None:
    reasons = undetermined_reasons(report)
    if reasons:
        page.section("Could not tell", STYLES["unknown"])
    for reason, codes in reasons.items():
        shown = codes if verbose or len(codes) <= 3 else [*codes[:3], f"and {len(codes) - 3} more"]
        page.hanging("", f"{reason} ({', '.join(shown)})", _INDENT)


def undetermined_reasons(report: Report) -> dict[str, list[str]]:
    """Why something could not be judged, each reason once, with the codes of its causes."""
    reasons: dict[str, list[str]] = {}
    for outcome in report.undetermined:
        for reason in dict.fromkeys(outcome.reasons):
            reasons.setdefault(reason, []).append(outcome.code)
    return reasons


def _outcomes(page: Page, outcomes: Sequence[Outcome]) -> None:
    """One line for each outcome, in columns if the page is wide enough."""
    longest_cause = max((len(outcome.cause) for outcome in outcomes), default=0)
    longest_status = max((len(outcome.status) for outcome in outcomes), default=0)
    in_columns = page.width >= longest_cause + longest_status + _NARROWEST_REASON
    page.line()
    for outcome in outcomes:
        label = f"  {outcome.code}  "
        words = [outcome.cause, outcome.status, *outcome.reasons[:1]]
        if in_columns:
            label += f"{outcome.cause:{longest_cause}}  {outcome.status:{longest_status}}  "
            words = words[2:]
        page.hanging(label, "  ".join(words), cells(label))


def _summary(page: Page, report: Report, verbose: bool) -> None:
    page.line()
    page.paragraph(counted_outcomes(report.outcomes), DIM)
    if report.root_causes:
        more = "" if verbose else ". Every check: whygpu check -v"
        page.paragraph(f"Details: whygpu rule {report.root_causes[0].code}{more}", DIM)


def counted_outcomes(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(outcome.status for outcome in outcomes)
    parts = [
        f"{counts[status]} {status.replace('-', ' ')}" for status in STATUSES if counts[status]
    ]
    return f"{len(outcomes)} causes checked: {', '.join(parts)}."


def write_remedy(page: Page, remedy: Remedy, installer: Installer, label: str = "fix") -> None:
    labelled(page, label, remedy_text(remedy, installer))
    command = shell_text(remedy.action, installer)
    if command is not None:
        page.line(f"{' ' * _TEXT_INDENT}{command}", BOLD)


def shortened(text: str, longest: int = _LONGEST_EVIDENCE) -> str:
    return text if len(text) <= longest else f"{text[:longest]} ... (-v)"


def labelled(page: Page, label: str, text: str) -> None:
    page.hanging(f"{' ' * _INDENT}{label}", text, _TEXT_INDENT)
