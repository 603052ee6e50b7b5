"""The type of a redaction rule, and an index that finds the rules which can match a text.

There are about a hundred rules, and most texts match none. So each rule lists words without which
it cannot match, and an index of their prefixes shows which rules to try. A pattern that no text
needs is never compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from whygpu.model.lazy_regex import late

REMOVED = "<removed>"

PLACEHOLDER = r"<(?:user|host|removed|ip removed|mac removed|e-mail removed)>"
"""The placeholders of private data."""

BOUNDARY = r"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-F][0-9A-F]))"
"""Where a word may begin: also after a character that is escaped in a URL."""

CONTAINER = r"(?=[a-f]{0,11}\d)[0-9a-f]{12}"
"""The host names of Docker containers. They identify no machine, but show a container."""

_START = 3
"""How many characters of a word the index uses."""


class Rule(NamedTuple):
    needs: tuple[str, ...]
    """Lower-case words; the rule does not change a text that contains none of them."""
    clean: Callable[[str], str]
    pattern: re.Pattern[str] | None = None
    """For tests; what `clean` looks for."""


def pattern_rule(
    needs: str | tuple[str, ...], pattern: str, replacement: str | Callable[[re.Match[str]], str]
) -> Rule:
    """A rule that replaces the matches of a pattern; `needs` as a text is split at spaces."""
    expression = late(pattern)
    words = tuple(needs.split()) if isinstance(needs, str) else needs
    return Rule(words, lambda text: expression.sub(replacement, text), expression)


def apply(rules: Iterable[Rule], text: str) -> str:
    """Apply a few rules without an index, which would take longer than trying each."""
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
