"""Finds the text of an XML element by a name in its tag, however the brackets are written."""

from __future__ import annotations

import string
from typing import NamedTuple

from whygpu.model.lazy_regex import late

_LESS = r"(?:<|&(?:amp;)?(?:lt|#60|#x3[cC]);|\\{1,4}(?:u00|x)3[cC])"
_GREATER = r"(?:>|&(?:amp;)?(?:gt|#62|#x3[eE]);|\\{1,4}(?:u00|x)3[eE])"
_BLANKS = r"[\s\\\"',]{0,80}"
"""Space between elements and around a text, including line breaks and quoted line breaks."""
QUOTE = r"(?:\\{0,7}[\"'`]|&(?:amp;)?(?:quot|apos|#3[49]);)"

_OPENS_TAG = late(rf"{_LESS}(?:[\w.-]{{1,40}}:|[^<>\n]{{1,60}}\b(?:name|key|id)={QUOTE})?$")
"""Before a name: `<`, `<soap:` or `<string name="`."""
_ATTRIBUTES = r"(?:\s(?:[^<>&\\]|&(?:quot|apos|#3[49]);|\\{1,7}[\"']){0,120})?"
_ENDS_TAG = late(rf"(?:{QUOTE})?{_ATTRIBUTES}(?<!/){_GREATER}{_BLANKS}(?:<!\[CDATA\[)?")
_ENDS_OTHER_TAG = late(rf"{_GREATER}\s{{0,8}}$")
_NEXT_TAG = late(
    rf"\s{{0,8}}{_LESS}/[\w:.-]{{1,40}}{_GREATER}{_BLANKS}{_LESS}[\w:.-]{{1,40}}{_GREATER}{_BLANKS}"
)
"""A property list has the name in an element of its own: <key>password</key><string>..."""
_TEXT = late(r"(?:[^<\]]|\](?!\]>))+")
_ESCAPED_TEXT = late(rf"(?:[^<&\\]|(?!{_LESS})[&\\])+")
_CLOSING_TAG = late(rf"\s{{0,80}}(?:\]\]>\s{{0,80}})?{_LESS}/")
_WORD = late(r"\w[^\s,;…]{0,8191}")


class Element(NamedTuple):
    start: int
    """The offset of the text."""
    text: str
    """The text without surrounding spaces; only the first word if there is no closing tag."""
    is_closed: bool


def element_text(text: str, name_start: int, name_end: int, longest: int) -> Element | None:
    """The text of the element whose tag contains the name at this place, up to a length.

    An excerpt may have been cut before the closing tag, so that tag is not required.
    """
    before = text[max(0, name_start - 80) : name_start]
    if _OPENS_TAG.search(before):
        tag = _ENDS_TAG.match(text, name_end)
    elif _ENDS_OTHER_TAG.search(before):
        tag = _NEXT_TAG.match(text, name_end)
    else:
        return None
    if tag is None:
        return None
    # If the tag has plain brackets, an escaped bracket is part of the text.
    inside = _TEXT if ">" in tag[0] else _ESCAPED_TEXT
    found = inside.match(text, tag.end(), tag.end() + longest)
    if found is None:
        return None
    if _CLOSING_TAG.match(text, found.end()):
        return Element(found.start(), found[0].rstrip("\"',\\" + string.whitespace), is_closed=True)
    word = _WORD.match(found[0])
    return Element(found.start(), word[0].rstrip("."), is_closed=False) if word else None
