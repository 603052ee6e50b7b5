"""The page of a cause, for the terminal and for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from whygpu.model.cause import Cause
from whygpu.render.text_page import BOLD, CYAN, Page

_CODE_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]+`")


def render(cause: Cause, *, width: int, color: bool, examples: bool = False) -> str:
    """The page as it was written; in colour, it is wrapped to the width as well."""
    written = cause.page if examples else cause.guide
    text = f"# {cause.code} {cause.slug}\n\n{written.strip()}\n"
    if not color:
        return text
    page = Page(width, color)
    for number, part in enumerate(_CODE_BLOCK.split(text)):
        if number % 2:
            for line in (*part.splitlines(), ""):
                page.line(f"    {line}")
        else:
            _prose(page, part)
    return _CODE.sub(lambda match: page.styled(match[0], CYAN), page.text())


def _prose(page: Page, text: str) -> None:
    for block in filter(None, map(str.strip, text.split("\n\n"))):
        if block.startswith("#"):
            page.line(block, BOLD)
        elif block.startswith("- "):
            for item in block.removeprefix("- ").split("\n- "):
                page.hanging("-", " ".join(item.split()), 2)
        else:
            page.paragraph(block)
        page.line()


def render_list(causes: Sequence[Cause]) -> str:
    return "".join(f"{cause.code}  {cause.slug:34} {cause.title}\n" for cause in causes)


def render_json(causes: Sequence[Cause], *, examples: bool = False) -> str:
    entries = [
        {
            "code": cause.code,
            "cause": cause.slug,
            "title": cause.title,
            "severity": cause.severity,
            "effect": cause.effect,
            "explains": list(cause.explains),
            "page": cause.guide.strip(),
            "examples": cause.examples.strip() if examples else None,
        }
        for cause in causes
    ]
    return json.dumps({"schema": 1, "causes": entries}, indent=2) + "\n"
