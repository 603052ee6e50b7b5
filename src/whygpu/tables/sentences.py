"""Whether a line is a sentence of a person, and of which kind, or what a program prints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from whygpu.model.lazy_regex import late
from whygpu.tables.complaints import FAILS, SAY_MOST, complaint_in
from whygpu.tables.words_of_people import one_of

_QUESTION = late(
    r"(?:^|[.!?:,] {1,2}|\b(?:so|but|and) )"
    r"(?:why|how|what|which|where|is|are|am|do|does|did|can|could|should|would|has|have)"
    r"(?:['’]s)?(?!\w)[^?\n]{2,300}\?(?:\W|$)",
    re.IGNORECASE,
)
WANTS_GPU = late(
    r"(?<![\w.])(?:I|i|we|We)(?: (?:do|also|already|just|still))?(?:['’]ve| have| got| has| bought)"
    r"(?! (?:no|not|to)\b)[^.,;\n]{0,30}\b(?:GPUs?|RTX|GTX|GeForce|graphics? card)"
    r"|\b(?:my|My) (?:\w{2,12} )?(?:GPUs?|RTX|GTX|GeForce|graphics? card)\b"
    r"|\b(?:[Ii]nstead of|on (?:the )?CPU,? (?:but )?not|not (?:on |using |the ){0,2}) ?"
    r"(?:the |my )?GPU\b"
)
"""A person has a GPU, or expects the work to be done on one."""
_PERSON = late(
    r"(?<![\w.])(?:I|I['’]\w{1,2}|[Mm]y|[Ww]e|[Oo]ur|[Ww]hy|[Hh]ow)(?![\w.])|\?$"
    # Many write no capital letters; "i" alone is a variable.
    r"|(?<![\w.\[(])i(?:['’]m|['’]ve|m| (?:am|have|had|get|got|want|need|use|used|run|ran|tried|try"
    r"|install|installed|did|do|don['’]?t|can|can['’]?t|cannot|could|see|saw|think|train|trained))(?!\w)"
    r"|(?<![\w.])[Ii]t(?:['’]s| is| just| always| only)? (?:stuck|hangs|freezes|crashes"
    r"|takes)(?!\w)"
    # Chinese, German, French, Spanish, Russian
    r"|我|为什么|为何|怎么|请问|如何|只有|[吗呢？]$"
    r"|(?<!\w)(?:[Ii]ch|[Mm]eine?|[Ww]arum|[Ww]ieso|[Jj]e|[Pp]ourquoi|[Pp]or qué|[Пп]очему"
    r"|[Уу] меня)(?!\w)"
)
FAULT_HEADING = late(
    r"^\W{0,8}(?:(?i:(?:current|actual|unexpected|observed) behaviou?r|describe the (?:bug"
    r"|problem|issue"
    r"|current behaviou?r)|what happened|what went wrong|bug description"
    r"|problem description))\W{0,8}$"
)
"""The heading of a form for faults, below which somebody says what is wrong."""
_CHOICE = late(r"[\[(] ?\[?(?:y|yes|n|no)\]? ?[/|] ?\[?(?:y|yes|n|no)\b", re.IGNORECASE)
"""What a program asks shows the answers that it takes: Continue? [y/N]"""


def asks_something(line: str) -> bool:
    """Whether a sentence of the line is a person's question, whatever it is about."""
    return "?" in line and _CHOICE.search(line) is None and _QUESTION.search(line) is not None


_TROUBLE = one_of(
    *("not", "no", r"\w{2,6}n['’]?t", "cannot", "never", "unable", "fail-", "errors?", "wrong"),
    *("problems?", "issues?", "troubles?", "crash-", "hang-", "stuck", "missing", "instead"),
    *("only", "always", "alway", "slow-", "help", "bug", "same error", "unexpected-"),
)
_ORDINARY = one_of(
    *("the", "a", "an", "is", "was", "it", "to", "with", "but", "and", "after", "while"),
    *("on", "in", "for", "this", "that", "have", "has", "uses?", "using", "i", "my", "we"),
    *("get", "gets", "getting", "got", "when", "why", "from", "there", "be"),
)
_LIKE_OUTPUT = late(r"^\W|^\S{0,80}[:=\[/\\|]|^\d|[{}<>]|\w=\S|\w\(\)?")
_FEWEST_WORDS = 6


_COMPLAINS = one_of(
    r"(?:it|this|program|process|script|kernel|job|computer|pc|training|python|and|then|was|is"
    r"|gets?|got|just|always|suddenly)(?: \w{1,10})? (?:crash(?:es|ed)|hangs|freezes|dies|died"
    r"|killed|stuck|fails)",
    r"(?<!not )(?:so|very|too|extremely|really|super) slow(?:ly)?",
    r"slower than (?:on |with )?(?:my|the|an?) (?:\w{1,8} )?(?:CPU|GPU|laptop|old|other)",
    r"(?:not|never|n['’]?t)(?: \w{1,8})? (?:decreas\w{1,4}|go(?:ing)? down|learn(?:ing)?"
    r"|converg\w{1,4}|improving|see|detect|find|recogni[sz]e|released|freed)(?! for \d)",
    *("please help", "any (?:help|idea)s?", "wrong (?:results?|predictions?|outputs?|answers?)"),
    *(r"(?:memory|RAM|VRAM) (?:\w{1,8} )?(?:grow(?:s|ing)|leaks?|increas\w{2,3})", "is gone"),
    *(
        r"ignor(?:es|ed) my",
        r"(?:GPU|card)s? (?:is |are )?(?:(?:not|n['’]t) (?:being )?used|ignored)",
    ),
    r"(?:used|uses?|at|utili\w{3,6}) only (?:at |to )?\d{1,2} ?(?:%|percent)",
    # Spanish, French, German, Russian
    *("(?:muy|demasiado|très|trop) lent[oea]", "(?:sehr|zu|so) langsam", "медленно"),
)
"""What somebody says above the output of a program. Few programs begin with such words."""

_GOES_ON = one_of("resum-", "restart-", "restor-", "re-?try-", "on purpose")
"""A program says what it does about it."""


def complains(line: str) -> bool:
    """Whether a line is a sentence of a person about trouble, even above output without any."""
    text = line.strip()
    if _LIKE_OUTPUT.search(text) or _GOES_ON.search(text):
        return False
    return _COMPLAINS.search(text) is not None


def reports_trouble(line: str) -> bool:
    """Whether a line is a sentence, in the words of a person, about something that goes wrong."""
    text = line.strip()
    if _LIKE_OUTPUT.search(text) or len(text.split()) < _FEWEST_WORDS:
        return False
    found = complaint_in(text)
    if found is not None and found.says in {each.says for each in (*SAY_MOST, FAILS)}:
        return True
    return _TROUBLE.search(text) is not None and len(_ORDINARY.findall(text)) > 1


def goes_on_after(sentence: str, line: str) -> bool:
    """Whether the line ends a sentence of a person that the line before it began."""
    return (
        bool(sentence)
        and sentence.rstrip()[-1:].isalpha()
        and not line.startswith(("  ", "\t", "File"))
    )


def is_of_a_person(line: str) -> bool:
    """Whether a person writes about themselves, or asks a question. Programs seldom do."""
    return _PERSON.search(line) is not None and _CHOICE.search(line) is None


_LABEL = late(r"\W{0,4}(?P<label>[A-Za-z]\w{0,20}(?: \w{1,12})?)(?: ?[#\[(]?\d{1,6}[\])]?)?: ")


def labels_of_samples(lines: Sequence[str]) -> frozenset[str]:
    """The labels of more than one line, as of texts that a program reads or writes: "Q: ..."."""
    found = Counter(match["label"] for line in lines if (match := _LABEL.match(line)))
    return frozenset(label for label, count in found.items() if count > 1)


def has_label(line: str, labels: frozenset[str]) -> bool:
    match = _LABEL.match(line)
    return match is not None and match["label"] in labels


_OPTION = late(r"\s{0,40}(?:-\w,? )?--\w")


def describes_option(line: str) -> bool:
    """Whether it is a line of a program's help: --no-cuda  do not use the GPU"""
    return _OPTION.match(line) is not None
