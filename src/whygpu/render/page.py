"""The page of a cause, for the terminal and for programs."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

from whygpu.model.cause import Cause


def render(cause: Cause, *, width: int, color: bool) -> str:
    from rich.console import Console
    from rich.markdown import Markdown

    text = f"# {cause.code} {cause.slug}\n\n{cause.page.strip()}\n"
    if not color:
        return text
    console = Console(file=io.StringIO(), width=width, force_terminal=True)
    with console.capture() as captured:
        console.print(Markdown(text))
    return captured.get()


def render_list(causes: Sequence[Cause]) -> str:
    return "".join(f"{cause.code}  {cause.slug:34} {cause.title}\n" for cause in causes)


def render_json(causes: Sequence[Cause]) -> str:
    entries = [
        {
            "code": cause.code,
            "cause": cause.slug,
            "title": cause.title,
            "severity": cause.severity,
            "effect": cause.effect,
            "explains": list(cause.explains),
            "page": cause.page.strip(),
        }
        for cause in causes
    ]
    return json.dumps({"schema": 1, "causes": entries}, indent=2) + "\n"
