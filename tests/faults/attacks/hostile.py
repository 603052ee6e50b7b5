"""Pieces of text that somebody would plant, and what they are planted into."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

ESCAPES = (
    "\x1b[31m",
    "\x1b[2J\x1b[H",
    "\x1b]0;title\x07",
    "\x1b]8;;http://example.com\x1b\\link\x1b]8;;\x1b\\",
    "\x1bP+q544e\x1b\\",
    "\x9b31m",
    "\x07",
    "\x08" * 8,
    "safe\rdanger",
    "\x00",
    "\x7f",
    "\u202egnp.exe\u202c",
    "\u2066x\u2069",
    "lib\u200bcudnn\u3164.so\U000e0041",
)
SHELL = (
    "'&&:>pwned&&echo'",
    "$(:>pwned)",
    "`:>pwned`",
    ";:>pwned;",
    "\n:>pwned\n",
    '";:>pwned;"',
    "'\n:>pwned\n'",
    "|:>pwned",
    "&:>pwned&",
    "x' ':>pwned' '",
    "${IFS}:>pwned",
    "--index-url=:>pwned",
    "-r",
    "~",
    "a b\tc",
    "\\",
    "\u2019&&:>pwned",
)
MARKUP = ("[bold]x[/bold]", "[/]", "<script>alert(1)</script>", "%s%n{0}{x!r}", "::error::x", "%0A")
SIZES = ("9" * 400, "-1", "1e999", "NaN", "0x" + "f" * 40, "99999999999999999999.0")
LONG = ("a" * 5000, "(" * 3000, "eyJ-" * 2000, "/" * 3000, " " * 3000, "名" * 2000)

_TOKEN = re.compile(r"[^\s,;:=()\[\]{}\"']{2,40}")


def word(chance: random.Random) -> str:
    """One piece, or two joined."""
    kinds = (ESCAPES, SHELL, SHELL, MARKUP, SIZES, LONG)
    first = chance.choice(chance.choice(kinds))
    return first if chance.random() < 0.7 else first + chance.choice(chance.choice(kinds))


def shell_word(chance: random.Random) -> str:
    """What a shell would act on, without the blanks that end a word of a log."""
    return chance.choice([each for each in SHELL if not re.search(r"\s", each)])


def words_in(text: str) -> Iterator[re.Match[str]]:
    return _TOKEN.finditer(text)


def planted(text: str, chance: random.Random, most: int = 4) -> str:
    """The text with some of its words replaced by, or glued to, something hostile."""
    for _ in range(chance.randint(1, most)):
        tokens = list(words_in(text))
        if not tokens:
            return text + word(chance)
        token = chance.choice(tokens)
        made = word(chance)
        if chance.random() < 0.5:
            made = token.group() + made
        text = text[: token.start()] + made + text[token.end() :]
    return text
