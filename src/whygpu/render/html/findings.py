"""A root cause as a box: what is wrong, how to fix it, and the evidence folded below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whygpu.model.commands import remedy_text, shell_text
from whygpu.model.derived import display_name
from whygpu.model.finding import MACHINE, Evidence, Finding, Remedy
from whygpu.model.target import Installer
from whygpu.render.html.markup import Child, Html, article, code, div, h3, li, p, ul
from whygpu.render.html.parts import badge, command, facts, folded, items, prose


def root_cause(
    root: Finding, installer: Installer, followers: Iterable[Finding] = (), *, message: bool = True
) -> Html:
    """`followers` are the findings that it explains. Without `message`, the headline says it."""
    names = list(dict.fromkeys(_named(each) for each in followers))
    return article(
        h3(
            f"{root.code} {root.cause}",
            badge(root.severity, root.severity),
            badge(display_name(root.subject), "") if root.subject != MACHINE else None,
            badge(root.confidence, "unknown") if root.confidence != "certain" else None,
        ),
        p(prose(root.message)) if message else None,
        p("To be sure: ", prose(root.ask)) if root.ask else None,
        remedies(root.remedies, installer),
        evidence(root.evidence),
        p("This also explains ", ", ".join(names), ".", kind="soft") if names else None,
        p("Why it happens, and what else helps: ", code(f"whygpu rule {root.code}"), kind="soft"),
        kind=f"finding {root.severity}",
    )


def remedies(given: Sequence[Remedy], installer: Installer, kind: str = "") -> Html | None:
    found = [
        li(prose(remedy_text(remedy, installer)), _command(remedy, installer)) for remedy in given
    ]
    return ul(found, kind=f"remedies {kind}".rstrip()) if found else None


def _command(remedy: Remedy, installer: Installer) -> Html | None:
    text = shell_text(remedy.action, installer)
    return command(text) if text is not None else None


def evidence(seen: Sequence[Evidence]) -> Html | None:
    """Where each thing was seen, and what, folded away."""
    if not seen:
        return None
    rows: list[tuple[str, Child]] = [(place(each), code(each.text)) for each in seen]
    count = f"{len(seen)} thing" if len(seen) == 1 else f"{len(seen)} things"
    return folded(f"Evidence: {count} seen", facts(rows))


def place(each: Evidence) -> str:
    """The line of a log; for a fact of the machine, its source."""
    return each.where if each.line is None else f"line {each.line}"


def in_short(found: Iterable[Finding]) -> Html | None:
    """Findings that need no action, one line each."""
    return items(div(code(f"{each.code} {each.cause}"), f": {each.message}") for each in found)


def _named(finding: Finding) -> str:
    about = "" if finding.subject == MACHINE else f" ({display_name(finding.subject)})"
    return f"{finding.code} {finding.cause}{about}"
