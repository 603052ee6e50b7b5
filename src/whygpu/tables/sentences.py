"""Whether a line is a sentence of a person, and of which kind, or what a program prints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from whygpu.model.lazy_regex import late
from whygpu.tables.concepts import concepts_of
from whygpu.tables.topics import topic_in

FEW_LINES = 2
"""A text of so few lines may be somebody's description of a symptom, and no output."""
WANTS_GPU = late(
    r"(?<![\w.])(?:I|i|we|We)(?: (?:do|also|already|just|still))?(?:['’]ve| have| got| has| bought)"
    r"(?! (?:no|not|to)\b)[^.,;\n]{0,30}\b(?:GPUs?|RTX|GTX|GeForce|graphics? card)"
    r"|\b(?:my|My) (?:\w{2,12} )?(?:GPUs?|RTX|GTX|GeForce|graphics? card)\b"
    r"|\b(?:[Ii]nstead of|on (?:the )?CPU,? (?:but )?not|not (?:on |using |the ){0,2}) ?"
    r"(?:the |my )?GPU\b"
)
"""A person has a GPU, or expects the work to be done on one."""
FAULT_HEADING = late(
    r"^\W{0,8}(?:(?i:(?:current|actual|unexpected|observed) behaviou?r|describe the (?:bug"
    r"|problem|issue"
    r"|current behaviou?r)|what happened|what went wrong|bug description"
    r"|problem description))\W{0,8}$"
)
"""The heading of a form for faults, below which somebody says what is wrong."""
_CHOICE = late(r"[\[(] ?\[?(?:y|yes|n|no)\]? ?[/|] ?\[?(?:y|yes|n|no)\b", re.IGNORECASE)
"""What a program asks shows the answers that it takes: Continue? [y/N]"""


POINTS_BELOW = late(
    r"(?<!\w)(?:follow\w{1,4}|these|below)(?: [\w-]{1,12}){0,2} (?:errors|warnings|messages|lines)"
    r"(?!\w)"
    r"|(?<!\w)(?:errors|warnings|messages|lines) (?:below|as follows)(?!\w)",
    re.IGNORECASE,
)
"""The errors that a person speaks of are the lines that follow."""
_ASKS = frozenset(("how", "why", "which", "whether"))
_SPEAKS_OF_SELF = late(r"(?<![\w.])(?:I|I['’]\w{1,2})(?![\w.])|[?？][\"')]{0,2}$")


def asks_something(line: str) -> bool:
    """Whether a sentence of the line is a person's question, whatever it is about."""
    if not ("?" in line or "？" in line) or _CHOICE.search(line) is not None:
        return False
    return any(not _ASKS.isdisjoint(concepts_of(each)) for each in _QUESTIONS.findall(line))


_QUESTIONS = late(r"[^.!?？\n]{3,300}[?？](?=\W|$)")
_LIKE_OUTPUT = late(
    r"^(?:INFO|WARN|DEBUG|def|class|assert|import|commit|test_\w{1,80})\b|^\w{1,20} \d{1,4}:|^\W"
    r"|^\S{0,80}[:=\[/\\|]|^\d|[{}<>]|\w=\S| --\w|\w\(\)?"
)
_FEWEST_WORDS = 6
_ORDINARY = frozenset(
    [
        "the",
        "a",
        "an",
        "is",
        "was",
        "it",
        "to",
        "with",
        "but",
        "and",
        "after",
        "while",
        "on",
        "in",
        "for",
        "this",
        "that",
        "have",
        "has",
        "uses",
        "use",
        "using",
        "i",
        "my",
        "we",
        "get",
        "gets",
        "getting",
        "got",
        "when",
        "why",
        "from",
        "there",
        "be",
    ]
)
_ENDS_BADLY = frozenset(("crash", "hang", "plea", "broke"))


def reports_trouble(line: str, *, above_work: bool = False) -> bool:
    """Whether a line is a sentence, in the words of a person, about something that goes wrong.

    Above work that is done, only what few programs say is such a report.
    """
    text = line.strip()
    said = concepts_of(text)
    if _LIKE_OUTPUT.search(text) or "resumes" in said:
        return False
    topic = topic_in(text)
    if topic is not None and not topic.is_question:
        return True
    if above_work:
        return not _ENDS_BADLY.isdisjoint(said)
    words = text.lower().split()
    ordinary = sum(word.strip(".,;:!?") in _ORDINARY for word in words)
    return "trouble" in said and len(words) >= _FEWEST_WORDS and ordinary > 1


def goes_on_after(sentence: str, line: str) -> bool:
    """Whether the line ends a sentence of a person that the line before it began."""
    return (
        bool(sentence)
        and sentence.rstrip()[-1:].isalpha()
        and not line.startswith(("  ", "\t", "File"))
    )


_OF_CODE = late(
    r"\s{0,40}(?:def|class|assert|import|from|return)\b|\s{0,40}(?:#|//) ?(?:TODO|FIXME)"
)


def is_of_a_person(line: str) -> bool:
    """Whether a person writes about themselves, or asks a question. Programs seldom do."""
    if _CHOICE.search(line) is not None or _OF_CODE.match(line) is not None:
        return False
    return _SPEAKS_OF_SELF.search(line) is not None or "person" in concepts_of(line)


_LABEL = late(r"\W{0,4}(?P<label>[A-Za-z]\w{0,20}(?: \w{1,12})?)(?: ?[#\[(]?\d{1,6}[\])]?)?: ")


_OF_A_SAMPLE = late(
    r"\W{0,6}(?:prompt|generated|sample|q|a|user|assistant|human|bot|input|target|caption|todo|fixme"
    r"|xxx)\b ?[\d#\[\]()]{0,8}[:>]",
    re.IGNORECASE,
)
"""What begins a text that a program reads or writes, or a remark in its source."""


def labels_of_samples(lines: Sequence[str]) -> frozenset[str]:
    """The labels of more than one line, as of texts that a program reads or writes: "Q: ..."."""
    found = Counter(match["label"] for line in lines if (match := _LABEL.match(line)))
    return frozenset(label for label, count in found.items() if count > 1)


def has_label(line: str, labels: frozenset[str]) -> bool:
    match = _LABEL.match(line)
    return (match is not None and match["label"] in labels) or _OF_A_SAMPLE.match(line) is not None


_OPTION = late(r"\s{0,40}(?:-\w,? )?--\w")


def describes_option(line: str) -> bool:
    """Whether it is a line of a program's help: --no-cuda  do not use the GPU"""
    return _OPTION.match(line) is not None
