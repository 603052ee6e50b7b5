"""What a rule of the gate is, and how the few that can matter to a text are found.

There are about a hundred rules, and nearly no text is the business of any. So each rule names words
that it cannot match without, and an index of their beginnings says which rules to try. A pattern
that no text needs is never compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from whygpu.model.lazy_regex import late

REMOVED = "<removed>"

PLACEHOLDER = r"<(?:user|host|removed|ip removed|mac removed|e-mail removed)>"
"""What stands in place of private data."""

BOUNDARY = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-F][0-9A-F]))"
"""Where a word may begin: also after a character that is escaped in a URL."""

CONTAINER = r"(?=[a-f]{0,11}\d)[0-9a-f]{12}"
"""How Docker calls its containers. That names nobody's machine, and shows that it is one."""

_START = 3
"""Characters of a word that the index goes by."""


class Rule(NamedTuple):
    needs: tuple[str, ...]
    """Lower-case words; the rule leaves a text alone that holds none of them in any case."""
    clean: Callable[[str], str]
    pattern: re.Pattern[str] | None = None
    """For tests; what `clean` looks for."""


def pattern_rule(
    needs: str | tuple[str, ...], pattern: str, replacement: str | Callable[[re.Match[str]], str]
) -> Rule:
    """A rule that replaces what a pattern finds; a text as `needs` has blanks between its words."""
    expression = late(pattern)
    words = tuple(needs.split()) if isinstance(needs, str) else needs
    return Rule(words, lambda text: expression.sub(replacement, text), expression)


def apply(rules: Iterable[Rule], text: str) -> str:
    """For a few rules: an index would cost more than asking each."""
    lowered = text.lower()
    for rule in rules:
        if any(word in lowered for word in rule.needs):
            text = rule.clean(text)
    return text


class RuleBook:
    """Rules in the order in which they are applied, with an index by what they need."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._by_start: dict[str, set[int]] = {}
        self._by_short_word: dict[str, set[int]] = {}
        for number, rule in enumerate(self.rules):
            for word in rule.needs:
                index = self._by_start if len(word) >= _START else self._by_short_word
                index.setdefault(word[:_START], set()).add(number)
        self._starts = frozenset(self._by_start)

    def apply(self, text: str) -> str:
        for number in sorted(self._candidates(text.lower())):
            text = self.rules[number].clean(text)
        return text

    def _candidates(self, lowered: str) -> set[int]:
        found: set[int] = set()
        for word, numbers in self._by_short_word.items():
            if word in lowered:
                found |= numbers
        starts = {lowered[at : at + _START] for at in range(len(lowered) - _START + 1)}
        for start in starts & self._starts:
            found |= {
                number
                for number in self._by_start[start]
                if any(word in lowered for word in self.rules[number].needs)
            }
        return found
