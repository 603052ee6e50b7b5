"""Writes the difference between two contents of a file as a patch for `git apply` and `patch -p1`.

It works on bytes: a file may have any encoding, and only a line feed ends a line. Names are written
as git writes them, relative to the current folder. A file outside that folder is named from the
root folder (`patch -p1 -d /`).
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

_QUOTED = {7: "a", 8: "b", 9: "t", 10: "n", 11: "v", 12: "f", 13: "r", 34: '"', 92: "\\"}
_NO_LINE_END = b"\n\\ No newline at end of file\n"


def patch(path: str, before: bytes, after: bytes) -> bytes:
    name = _from_here(path)
    # One character for each byte: difflib compares texts.
    old, new = (list(_lines(content.decode("latin-1"))) for content in (before, after))
    hunks = list(difflib.unified_diff(old, new))[2:]
    head = b"--- " + _name("a", name) + b"\n+++ " + _name("b", name) + b"\n"
    return head + b"".join(_ended(line.encode("latin-1")) for line in hunks)


def _lines(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + _NO_LINE_END


def _from_here(path: str) -> str:
    if not os.path.isabs(path) and not path.startswith(os.pardir):
        return os.path.normpath(path)
    whole = os.path.abspath(path)
    here = os.getcwd()
    if os.path.commonpath((whole, here)) == here:
        return os.path.relpath(whole, here)
    return whole.lstrip("/")


def _name(side: str, name: str) -> bytes:
    raw = f"{side}/".encode() + os.fsencode(name)
    if any(byte < 32 or byte in b'"\\\x7f' for byte in raw) or not _is_utf8(raw):
        return b'"' + b"".join(_quoted(byte) for byte in raw) + b'"'
    # A tab ends a name that contains spaces.
    return raw + b"\t" if b" " in raw else raw


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _quoted(byte: int) -> bytes:
    if byte in _QUOTED:
        return b"\\" + _QUOTED[byte].encode()
    return bytes((byte,)) if 32 <= byte < 127 else b"\\%03o" % byte
