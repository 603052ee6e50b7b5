"""The page of one cause: why it happens, what it looks like, how to fix it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.model.cause import Cause
from whygpu.render.html.markup import Child, Html, code, p
from whygpu.render.html.parts import Section, Sheet, items, lines, sections

_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")


def sheet(cause: Cause) -> Sheet:
    return Sheet(
        "rule",
        "answered",
        cause.title,
        (f"{cause.code} {cause.slug}", cause.severity),
        None,
        tuple(_sections(cause)),
    )


def _sections(cause: Cause) -> Iterator[Section]:
    _, *parts = _SECTION.split(cause.guide)
    for title, text in zip(parts[::2], parts[1::2], strict=True):
        yield from sections((title, list(_blocks(text))))


def _blocks(text: str) -> Iterator[Html | None]:
    """Our own pages use code blocks, lists and paragraphs, and nothing else."""
    for number, part in enumerate(_CODE_BLOCK.split(text)):
        if number % 2:
            yield lines(part.rstrip("\n").splitlines())
            continue
        for block in filter(None, map(str.strip, part.split("\n\n"))):
            if block.startswith("- "):
                yield items(_words(item) for item in block.removeprefix("- ").split("\n- "))
            else:
                yield p(_words(block))


def _words(text: str) -> list[Child]:
    """With the code that is between backquotes."""
    parts = _CODE.split(" ".join(text.split()))
    return [code(part) if number % 2 else part for number, part in enumerate(parts)]
