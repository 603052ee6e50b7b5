"""Every verb as one function: the command line and `import whygpu` both call these.

Each module holds the verbs about one thing. It is imported when one of them is first used.
"""

TYPE_CHECKING = False  # importing typing for it would cost `import whygpu` most of its time
if TYPE_CHECKING:
    from typing import Any

    from whygpu.api.comparison import compare as compare
    from whygpu.api.differences import diff as diff
    from whygpu.api.environment_fixes import fix as fix
    from whygpu.api.environment_fixes import undo_fix as undo_fix
    from whygpu.api.fleet import fleet_check as fleet_check
    from whygpu.api.fleet import fleet_explain as fleet_explain
    from whygpu.api.fleet import fleet_recipe as fleet_recipe
    from whygpu.api.fleet import fleet_report as fleet_report
    from whygpu.api.logs import explain as explain
    from whygpu.api.logs import explain_file as explain_file
    from whygpu.api.logs import explain_uncaught as explain_uncaught
    from whygpu.api.machine import check as check
    from whygpu.api.machine import diagnose as diagnose
    from whygpu.api.machine import load_snapshot as load_snapshot
    from whygpu.api.machine import snapshot as snapshot
    from whygpu.api.memory_use import estimate_memory as estimate_memory
    from whygpu.api.memory_use import find_batch_size as find_batch_size
    from whygpu.api.memory_use import memory_holders as memory_holders
    from whygpu.api.overview import report as report
    from whygpu.api.pages import causes_of as causes_of
    from whygpu.api.pages import rule as rule
    from whygpu.api.pages import rules as rules
    from whygpu.api.past_runs import clear_history as clear_history
    from whygpu.api.past_runs import history as history
    from whygpu.api.past_runs import record_history as record_history
    from whygpu.api.past_runs import recorded_snapshot as recorded_snapshot
    from whygpu.api.plans import plan as plan
    from whygpu.api.plans import why_not as why_not
    from whygpu.api.release_table import update_releases as update_releases
    from whygpu.api.requirement_files import plan_from as plan_from
    from whygpu.api.running import Watch as Watch
    from whygpu.api.running import plan_run as plan_run
    from whygpu.api.running import profile_block as profile_block
    from whygpu.api.running import profile_trace as profile_trace
    from whygpu.api.running import run as run
    from whygpu.api.source import fixed_text as fixed_text
    from whygpu.api.source import lint as lint
    from whygpu.api.source import lint_causes as lint_causes
    from whygpu.api.source import lint_patch as lint_patch
    from whygpu.api.source import lint_text as lint_text

_MODULES = {
    "compare": "comparison",
    "diff": "differences",
    "fleet_check": "fleet",
    "fleet_explain": "fleet",
    "fleet_recipe": "fleet",
    "fleet_report": "fleet",
    "explain": "logs",
    "explain_file": "logs",
    "explain_uncaught": "logs",
    "check": "machine",
    "diagnose": "machine",
    "load_snapshot": "machine",
    "snapshot": "machine",
    "estimate_memory": "memory_use",
    "find_batch_size": "memory_use",
    "memory_holders": "memory_use",
    "fix": "environment_fixes",
    "undo_fix": "environment_fixes",
    "report": "overview",
    "causes_of": "pages",
    "rule": "pages",
    "rules": "pages",
    "clear_history": "past_runs",
    "history": "past_runs",
    "record_history": "past_runs",
    "recorded_snapshot": "past_runs",
    "plan": "plans",
    "why_not": "plans",
    "plan_from": "requirement_files",
    "update_releases": "release_table",
    "Watch": "running",
    "plan_run": "running",
    "profile_block": "running",
    "profile_trace": "running",
    "run": "running",
    "lint": "source",
    "lint_causes": "source",
    "lint_patch": "source",
    "lint_text": "source",
    "fixed_text": "source",
}


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_MODULES)
