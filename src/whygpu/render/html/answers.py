"""Which module renders which answer. Only that module is imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from whygpu.render.html import shell
from whygpu.render.html.parts import Sheet

MODULES = {
    "BatchResult": "memory_find",
    "ComparisonReport": "compare",
    "Explanation": "explain",
    "FileAnswer": "plan",
    "FixAnswer": "fix",
    "HoldersReport": "memory_holders",
    "LintReport": "lint",
    "MemoryEstimate": "memory_estimate",
    "PlanAnswer": "plan",
    "ReleaseAnswer": "plan",
    "Report": "check",
    "RunReport": "run",
}
"""The type of an answer, and the module of this package with the function `sheet`."""


def sheet_of(answer: Any) -> Sheet:
    module = import_module(f"whygpu.render.html.{MODULES[type(answer).__name__]}")
    sheet: Sheet = module.sheet(answer)
    return sheet


def page(answer: Any, version: str) -> str:
    """An answer as a whole page. `version` is whygpu's."""
    return shell.page(sheet_of(answer), version)


def page_of_several(heading: str, answers: Sequence[Any], version: str) -> str:
    return shell.page_of_several(heading, [sheet_of(each) for each in answers], version)


def fragment(answer: Any) -> str:
    """An answer as a notebook shows it."""
    return shell.fragment(sheet_of(answer))
