"""The page of a cause, for the terminal and for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from whygpu.model.cause import Cause
from whygpu.render.text_page import BOLD, CYAN, Page

_CODE_BLOCK = re.compile(r"^```[^\n]*\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_TITLE_COLUMN = 42

RULE_SCHEMA = 1
_CODE = re.compile(r"`[^`\n]+`")


def page_text(cause: Cause, proofs: Sequence[str], *, examples: bool) -> str:
    """The page as it was written, with what is proven of it."""
    written = (cause.page if examples else cause.guide).strip()
    proven = "\n".join(f"- {line}" for line in proofs)
    return f"# {cause.code} {cause.slug}\n\n{written}\n\n## What is proven\n\n{proven}\n"


def render(
    cause: Cause, proofs: Sequence[str], *, width: int, color: bool, examples: bool = False
) -> str:
    """The page for a terminal: wrapped to its width, and with examples indented."""
    text = page_text(cause, proofs, examples=examples)
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


def render_list(causes: Sequence[Cause], *, width: int) -> str:
    page = Page(width, color=False)
    for cause in causes:
        page.hanging(f"{cause.code}  {cause.slug:34}", cause.title, _TITLE_COLUMN)
    return page.text()


def render_json(
    causes: Sequence[Cause], proofs: Sequence[Sequence[str]], *, examples: bool = False
) -> str:
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
            "proofs": list(proven),
        }
        for cause, proven in zip(causes, proofs, strict=True)
    ]
    return json.dumps({"schema": RULE_SCHEMA, "causes": entries}, indent=2) + "\n"
