"""Text that came from outside (logs, file names, source, metadata), made safe to show.

A terminal obeys control characters in such text: escape sequences, their one-character forms (C1),
backspaces, carriage returns that overwrite a line, and controls that reverse the text direction.
Invisible characters mislead a reader.
"""

from __future__ import annotations

import re

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

_LINE_CHARACTERS = "\t\n"
_UNSAFE = re.compile(
    # C0 except tab and line feed; DEL; C1
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f"
    # direction marks, embeddings, overrides and isolates; other line ends
    r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    # invisible characters without width, which make two names look the same
    r"\u00ad\u115f\u1160\u180e\u200b\u2060-\u2065\u3164\ufeff\uffa0\U000e0000-\U000e007f"
    # surrogates, which cannot be written as UTF-8
    r"\ud800-\udfff]"
)

ESCAPE_SEQUENCE = re.compile(
    # CSI, such as colours
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    # OSC, such as titles and links; DCS, SOS, PM and APC
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"
    # two characters
    r"|\x1b[@-Z\\-_]"
)
"""A whole command to a terminal. The repeats are bounded: time stays linear in the text."""

LONGEST_QUOTE = 300
"""Characters of a line that is shown as evidence."""
_TOKEN = re.compile(r"[A-Za-z0-9_+/=.~%:@&?#-]")
"""A character of a path, an address or a key."""


def excerpt(text: str, longest: int = LONGEST_QUOTE) -> str:
    """The beginning of a text, cut between words.

    Half of a key is a key that the privacy gate does not recognise any more.
    """
    if len(text) <= longest:
        return text
    start = longest
    while start > 0 and _TOKEN.match(text[start]) and _TOKEN.match(text[start - 1]):
        start -= 1
    head = text[:start].rstrip()
    return f"{head} ..." if head else f"... ({len(text)} characters)"


_SAYS_WHAT_FAILED = re.compile(
    r"[Ee]rror|ERROR|[Ff]ail|[Cc]ould not|[Cc]annot|[Uu]nable|[Nn]ot found|[Nn]o GPU|STATUS_"
)


def telling_excerpt(text: str) -> str:
    """Of a long line, the part that says what failed: people write before it, and programs too."""
    found = _SAYS_WHAT_FAILED.search(text) if len(text) > LONGEST_QUOTE else None
    if found is None or found.start() < LONGEST_QUOTE // 2:
        return excerpt(text)
    start = text.rfind(" ", 0, found.start()) + 1
    return excerpt(f"... {text[start:]}" if start else text)


def printable(text: str) -> str:
    """The same text, with each control or invisible character replaced.

    Line feeds and tabs stay. The number of characters stays the same, so that columns stay correct.
    """
    harmless = text.isascii() and text.isprintable()
    return text if harmless else _UNSAFE.sub(REPLACEMENT, text)


def one_line(text: str) -> str:
    """Text on one line, for names: a line end in a file name must not start a line of output."""
    shown = printable(text)
    for character in _LINE_CHARACTERS:
        shown = shown.replace(character, REPLACEMENT)
    return shown


def without_sequences(text: str) -> str:
    """The text without escape sequences for colours, titles and cursor movements."""
    return ESCAPE_SEQUENCE.sub("", text)
