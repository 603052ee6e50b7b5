"""Verbs about the catalogue of causes: rule and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whygpu.causes import catalogue, find_cause
from whygpu.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from whygpu.model.cause import Cause
    from whygpu.model.finding import Finding


def rule(name: str) -> Cause:
    """One cause by its code or name: `.guide` says why it happens and how to fix it.

    Example:
        print(whygpu.rule("WG203").guide)
    """
    cause = find_cause(name) if isinstance(name, str) else None
    if cause is not None:
        return cause
    import difflib

    names = [word for cause in catalogue() for word in (cause.code, cause.slug)]
    begun = [word for word in names if word.lower().startswith(str(name).lower())]
    close = begun or difflib.get_close_matches(str(name), names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise UsageError(f"there is no cause {name!r}; {hint}`whygpu rule` lists them all")


def search(words: str) -> tuple[Cause, ...]:
    """The one cause with this code or name, or else the causes whose pages have these words.

    The best matches come first. Messages that people paste are often only in the examples.
    """
    cause = find_cause(words)
    if cause is not None:
        return (cause,)
    wanted = words.lower().split()
    matches = [(_match(cause, wanted), cause) for cause in catalogue()] if wanted else []
    found = [(match, cause) for match, cause in matches if match is not None]
    # Causes that match equally stay in the order of their codes.
    found.sort(key=lambda pair: pair[0])
    if found or len(wanted) < 2:
        return tuple(cause for _, cause in found) or (rule(words),)
    raise UsageError(
        f"no page has the words {words!r}; if they are a message or a symptom, try "
        f"`whygpu explain {words!r}`"
    )


def _match(cause: Cause, wanted: list[str]) -> tuple[int, int] | None:
    """How well a page has the words, the best first: where, and how often as a phrase."""
    phrase = " ".join(wanted)
    title = f"{cause.slug.replace('-', ' ')} {cause.slug} {cause.title}".lower()
    guide, examples = (" ".join(text.lower().split()) for text in (cause.guide, cause.examples))
    often = guide.count(phrase)
    if phrase in title:
        return (0, 0)
    if often:
        return (1, -often)
    if all(word in title for word in wanted):
        return (2, 0)
    if phrase in examples:
        return (3, -examples.count(phrase))
    return (4, 0) if all(word in guide for word in wanted) else None


def rules() -> tuple[Cause, ...]:
    """Every cause, by code.

    Example:
        [cause.code for cause in whygpu.rules()]
    """
    return catalogue()


def causes_of(findings: Iterable[Finding]) -> tuple[Cause, ...]:
    """The causes of some findings, each once, by code."""
    codes = {finding.code for finding in findings}
    return tuple(cause for cause in catalogue() if cause.code in codes)


def proofs(cause: Cause) -> tuple[str, ...]:
    """How a cause and its remedies were proven: in the fault lab, on a GPU, or not."""
    from whygpu.tables.proofs import proofs_of

    return proofs_of(cause.slug)
