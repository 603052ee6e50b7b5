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

    Those that have them in their name or title come first.
    """
    cause = find_cause(words)
    if cause is not None:
        return (cause,)
    wanted = words.lower().split()

    def has(text: str) -> bool:
        return all(word in text.lower() for word in wanted)

    named = [cause for cause in catalogue() if has(f"{cause.slug} {cause.title}")]
    others = [cause for cause in catalogue() if has(cause.guide) and cause not in named]
    return (*named, *others) if wanted and (named or others) else (rule(words),)


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
