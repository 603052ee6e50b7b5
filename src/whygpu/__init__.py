"""Why does this program use (or not use) the GPU?

    import whygpu
    whygpu.check()                       does each framework here use the GPU?
    whygpu.explain("train.log")          what a log, a traceback or an exception means
    whygpu.plan("torch")                 which releases fit this machine
    whygpu.run("python train.py", "gpu") run a program under a policy, and prove where it ran

`dir(whygpu)` lists all verbs, and help(whygpu.plan) describes one.
"""

from whygpu import version as _version

TYPE_CHECKING = False  # importing typing for it would cost `whygpu --help` a quarter of its time
if TYPE_CHECKING:
    from typing import Any

    from whygpu.api import check as check
    from whygpu.api import clear_history as clear_history
    from whygpu.api import compare as compare
    from whygpu.api import diagnose as diagnose
    from whygpu.api import diff as diff
    from whygpu.api import estimate_memory as estimate_memory
    from whygpu.api import explain as explain
    from whygpu.api import find_batch_size as find_batch_size
    from whygpu.api import fix as fix
    from whygpu.api import fleet_check as fleet_check
    from whygpu.api import fleet_explain as fleet_explain
    from whygpu.api import fleet_recipe as fleet_recipe
    from whygpu.api import fleet_report as fleet_report
    from whygpu.api import history as history
    from whygpu.api import lint as lint
    from whygpu.api import lint_patch as lint_patch
    from whygpu.api import load_snapshot as load_snapshot
    from whygpu.api import memory_holders as memory_holders
    from whygpu.api import plan as plan
    from whygpu.api import plan_from as plan_from
    from whygpu.api import plan_run as plan_run
    from whygpu.api import profile_trace as profile_trace
    from whygpu.api import record_history as record_history
    from whygpu.api import report as report
    from whygpu.api import rule as rule
    from whygpu.api import rules as rules
    from whygpu.api import run as run
    from whygpu.api import snapshot as snapshot
    from whygpu.api import undo_fix as undo_fix
    from whygpu.api import why_not as why_not
    from whygpu.errors import PolicyError as PolicyError
    from whygpu.errors import UsageError as UsageError
    from whygpu.guard.guard import OomGuard as OomGuard
    from whygpu.guard.guard import oom_guard as oom_guard
    from whygpu.host.replay import ReplayHost as ReplayHost
    from whygpu.launch.inprocess import apply as apply
    from whygpu.launch.inprocess import device as device
    from whygpu.launch.inprocess import require_gpu as require_gpu
    from whygpu.model.policy import DevicePolicy as DevicePolicy

__version__ = _version.VERSION

_MODULES = {
    "DevicePolicy": "whygpu.model.policy",
    "OomGuard": "whygpu.guard.guard",
    "PolicyError": "whygpu.errors",
    "ReplayHost": "whygpu.host.replay",
    "UsageError": "whygpu.errors",
    "apply": "whygpu.launch.inprocess",
    "check": "whygpu.api",
    "clear_history": "whygpu.api",
    "compare": "whygpu.api",
    "device": "whygpu.launch.inprocess",
    "diagnose": "whygpu.api",
    "diff": "whygpu.api",
    "estimate_memory": "whygpu.api",
    "explain": "whygpu.api",
    "find_batch_size": "whygpu.api",
    "fix": "whygpu.api",
    "fleet_check": "whygpu.api",
    "fleet_explain": "whygpu.api",
    "fleet_recipe": "whygpu.api",
    "fleet_report": "whygpu.api",
    "history": "whygpu.api",
    "lint": "whygpu.api",
    "lint_patch": "whygpu.api",
    "load_snapshot": "whygpu.api",
    "memory_holders": "whygpu.api",
    "oom_guard": "whygpu.guard.guard",
    "plan": "whygpu.api",
    "plan_from": "whygpu.api",
    "plan_run": "whygpu.api",
    "report": "whygpu.api",
    "record_history": "whygpu.api",
    "profile_trace": "whygpu.api",
    "require_gpu": "whygpu.launch.inprocess",
    "rule": "whygpu.api",
    "rules": "whygpu.api",
    "run": "whygpu.api",
    "snapshot": "whygpu.api",
    "undo_fix": "whygpu.api",
    "why_not": "whygpu.api",
}
__all__ = [*_MODULES, "__version__", "install", "profile", "record"]


def __getattr__(name: str) -> "Any":
    """Import a public name when it is first used, so that `import whygpu` costs nothing."""
    if name not in _MODULES:
        import sys

        message = f"module 'whygpu' has no attribute {name!r}"
        # With these, Python asks "Did you mean ...?".
        raise AttributeError(message, name=name, obj=sys.modules[__name__])
    from importlib import import_module

    _show_html_in_notebooks()
    return getattr(import_module(_MODULES[name]), name)


def _show_html_in_notebooks() -> None:
    from whygpu.model import html_repr

    html_repr.render = _html


def _html(report: "Any") -> str:
    """What a notebook shows of a report."""
    from whygpu.notebook.display import html

    return html(report)


def __dir__() -> "list[str]":
    return sorted(__all__)


def install() -> None:
    """From now on, explain uncaught exceptions that have to do with the GPU.

    Those that end the program, those of threads, and those of notebook cells.

    Example:
        whygpu.install()
    """
    from whygpu.api import explain_uncaught

    explain_uncaught(_shown_below)


def _shown_below(found: "Any") -> str:
    """The text to print below a traceback. A notebook shows the explanation as HTML instead."""
    from whygpu.notebook import display

    if display.in_kernel() and display.show(found):
        return ""
    from whygpu.render.explain_text import render

    return render(found, width=80, color=False, verbose=False)


def load_ipython_extension(shell: "Any") -> None:
    """What `%load_ext whygpu` calls: the magics, and explained exceptions."""
    from whygpu.notebook.magics import register

    register(shell)
    install()


def unload_ipython_extension(shell: "Any") -> None:
    """What `%unload_ext whygpu` calls."""
    from whygpu.notebook.magics import unregister

    unregister(shell)


def profile(steps: str = "", *, quiet: bool = False) -> "Any":
    """Profile the training in a block, and print why its steps take as long as they do.

    `steps` such as "20..60" chooses the steps to judge. With quiet=True, nothing is printed:
    `answer` of what the block gives has the result.

    Example:
        with whygpu.profile() as profiled:
            train()
        profiled.answer
    """
    from whygpu.api import profile_block

    _show_html_in_notebooks()
    return profile_block(steps) if quiet else profile_block(steps, _print_profile)


def _print_profile(answer: "Any") -> None:
    import sys

    from whygpu.notebook import display

    if display.in_kernel() and display.show(answer):
        return
    from whygpu.model.outside_text import printable
    from whygpu.render.profile_text import render

    sys.stderr.write(f"whygpu: {printable(render(answer))}")


def record(name: str, array: "Any") -> None:
    """Note an array, or a structure of them, for `whygpu compare`; otherwise this does nothing.

    Example:
        whygpu.record("logits", logits)
    """
