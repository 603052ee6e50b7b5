"""Which module renders which answer. Only that module is imported."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from whygpu.model.overview import Overview
from whygpu.render.html import shell
from whygpu.render.html.parts import Sheet

MODULES = {
    "BatchResult": "memory_find",
    "Cause": "cause",
    "ComparisonReport": "compare",
    "Explanation": "explain",
    "DiffAnswer": "diff",
    "FileAnswer": "plan",
    "FixAnswer": "fix",
    "FleetLogs": "fleet_logs",
    "FleetReport": "fleet",
    "HoldersReport": "memory_holders",
    "LaunchPlan": "launch_plan",
    "LintReport": "lint",
    "MemoryEstimate": "memory_estimate",
    "PlanAnswer": "plan",
    "ProfileAnswer": "profile",
    "ReleaseAnswer": "plan",
    "Report": "check",
    "RunReport": "run",
    "Snapshot": "snapshot",
    "SourcePatch": "patch",
    "Undone": "fix",
}
"""The type of an answer, and the module of this package with the function `sheet`."""


def sheet_of(answer: Any) -> Sheet:
    module = import_module(f"whygpu.render.html.{MODULES[type(answer).__name__]}")
    sheet: Sheet = module.sheet(answer)
    return sheet


def page(answer: Any, version: str) -> str:
    """An answer as a whole page. `version` is whygpu's."""
    if isinstance(answer, Overview):
        return page_of_several("What whygpu sees of this machine", answer, version)
    return shell.page(sheet_of(answer), version)


def page_of_several(heading: str, answers: Sequence[Any], version: str) -> str:
    return shell.page_of_several(heading, [sheet_of(each) for each in answers], version)


def fragment(answer: Any) -> str:
    """An answer as a notebook shows it."""
    if isinstance(answer, Overview):
        return shell.fragment_of_several([sheet_of(each) for each in answer])
    return shell.fragment(sheet_of(answer))
