"""What people ask or complain about: the best topic for the concepts of their sentence.

The rows are in `topics_asked.py` and `topics_told.py`. A topic is added there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.tables.concepts import concepts_of


class Topic(NamedTuple):
    """One symptom or question."""

    says: str
    """The rest of a sentence that begins with "somebody says that", or "somebody asks"."""
    needs: tuple[str, ...]
    """Sets of concepts; one set must be complete. `a|b` is either of two, `!a` forbids it."""
    wants: str = ""
    """Concepts that make it more likely."""
    weight: int = 0
    """What it counts more than others, or less if it is general."""
    says_most: bool = False
    """Whether it counts before a general one that somebody says first."""
    steps: tuple[Remedy, ...] = ()
    candidates: tuple[str, ...] = ()
    """The usual reasons, most common first."""
    ask: str | None = None
    """The question whose answer would decide."""

    @property
    def is_question(self) -> bool:
        return self.says.startswith(("how ", "whether ", "about ", "which ", "why "))

    @property
    def asks_for_use(self) -> bool:
        """Whether a log answers it that shows the GPU at work."""
        return "whether" in self.says

    def score(self, said: frozenset[str]) -> int:
        """How many of the concepts it explains; 0 if one that it needs is missing."""
        best = max((_matched(set_, said) for set_ in self.needs), default=0)
        return best and best + self.weight + len(said.intersection(self.wants.split()))


def _matched(needs: str, said: frozenset[str]) -> int:
    matched = 0
    for each in needs.split():
        if each.startswith("!"):
            if said.intersection(each[1:].split("|")):
                return 0
        elif said.isdisjoint(each.split("|")):
            return 0
        else:
            matched += 2
    return matched


_SENTENCE = late(r"[^\n。？！]+?(?:[.?!;。？！](?=\s|$)|[。？！]|$)")
_NO_SENTENCE = late(
    r"^\W{0,4}[|+]|\|[^|\n]*\||[=-]{4}|^[\w .-]{1,40}[:=] ?\S{1,12}$|^\W{0,3}[A-Z]+_[A-Z_]+\W{0,3}$"
)
"""A row of a table, a name with its value, or the name of a code."""
_LONGEST_PARAGRAPH = 4000
"""Nobody writes more in one line; programs do."""


@cache
def topics() -> tuple[Topic, ...]:
    from whygpu.tables.topics_asked import QUESTIONS
    from whygpu.tables.topics_told import SYMPTOMS

    return (*QUESTIONS, *SYMPTOMS)


@lru_cache(maxsize=256)
def topics_in(line: str) -> tuple[Topic, ...]:
    """What the first sentence that says or asks something about the GPU is about.

    There are two topics if they explain as much. A later sentence counts if the first only says
    something general. The sentences together come last: the GPU may be named in one, and "not
    detected" in another.
    """
    line = line[:_LONGEST_PARAGRAPH]
    if _NO_SENTENCE.search(line):
        return ()
    sentences = [found[0] for found in _SENTENCE.finditer(line)]
    rows = [found for sentence in sentences if (found := best_topics(sentence))]
    whole = best_topics(line) if len(sentences) > 1 else ()
    chosen = rows[most_telling([row[0] for row in rows])] if rows else ()
    if whole and (not chosen or (chosen[0].weight < 0 <= whole[0].weight)):
        return whole
    return chosen


def best_topics(sentence: str) -> tuple[Topic, ...]:
    said = concepts_of(sentence)
    if "tpu" in said:
        return ()
    scored = [(topic.score(said), topic) for topic in topics()]
    best = max(score for score, _ in scored)
    if best <= 0:
        return ()
    return tuple(topic for score, topic in scored if score == best)[:2]


def topic_in(line: str) -> Topic | None:
    return next(iter(topics_in(line)), None)


def most_telling(rows: Sequence[Topic]) -> int:
    """The place of the first; if that is general, of one that says what does not work."""
    if rows[0].weight >= 0:
        return 0
    return next((place for place, row in enumerate(rows) if row.says_most), 0)
