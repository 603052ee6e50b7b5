"""Reads untrusted JSON with limits: a small text can describe a huge or very deep value."""

from __future__ import annotations

import codecs
import json
from typing import Any

from whygpu.readers import limits

_STRUCTURE = (b"[", b"{", b",")
"""Each value except the first follows one of these."""
_BEGINNINGS = frozenset(
    word[:end] for word in ("true", "false", "null") for end in range(1, len(word))
)
"""With one of these at the end, the text was cut off."""
_CUT_OFF = "it ends in the middle of a value, as if it were cut off"


def loads(content: bytes) -> Any:
    """The value; raises ValueError if it is invalid, too large or nested too deeply.

    The message says what is wrong with the content, in a sentence about "it".
    """
    if sum(map(content.count, _STRUCTURE)) > limits.JSON_VALUES:
        raise ValueError(f"it has more than {limits.JSON_VALUES:,} values")
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        # Use the byte order mark if there is one: a Windows shell writes UTF-16.
        return json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError as error:
        cut = error.reason == "unexpected end of data"
        raise ValueError(_CUT_OFF if cut else "it has binary data, not text") from None
    except json.JSONDecodeError as error:
        raise ValueError(_what_is_wrong(error)) from None
    except ValueError:
        # Python refuses numbers of thousands of digits, in words about its own settings.
        raise ValueError("it has a number with too many digits") from None


def _what_is_wrong(error: json.JSONDecodeError) -> str:
    """Without a quote from the content: a link may lead to any file, also to one with passwords."""
    rest = error.doc[error.pos :].strip()
    if not error.doc.strip():
        return "it is empty"
    # The first word of a log may be valid JSON, as that of 2024-05-03 is.
    if error.doc.lstrip()[0] not in '{["' or not error.doc[: error.pos].strip():
        return (
            "it is not JSON, but perhaps the message of a program that failed, or a log "
            "(`whygpu explain` reads logs)"
        )
    if not rest or error.msg.startswith("Unterminated") or rest in _BEGINNINGS:
        return _CUT_OFF
    where = f"line {error.lineno}, column {error.colno}"
    if error.msg == "Extra data":
        return f"it has more after its end ({where}), as if two programs had written to it"
    return f"it is not valid JSON in {where}"
