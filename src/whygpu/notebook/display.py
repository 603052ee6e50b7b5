"""An answer as a notebook shows it. Notebooks are shared, so private data is removed first."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from whygpu.cli.output import public

_NAMES = {
    "FileAnswer": ("file", "path"),
    "FleetLogs": ("file", "unknown", "node", "name"),
    "FleetReport": ("node", "nodes"),
    "LintReport": ("path",),
}
"""Fields that hold names of files and nodes, by the type of the answer: readers look for them."""


def show(answer: Any) -> bool:
    """Display an answer below the cell, as HTML and for other frontends as text.

    False if the answer has no such form.
    """
    from IPython.display import display

    # Text output of lint is made from the report and its marked lines.
    report = answer[0] if type(answer) is tuple else answer
    if not hasattr(report, "_repr_html_"):
        return False
    sys.stdout.flush()
    display({"text/html": html(report), "text/plain": repr(report)}, raw=True)
    return True


def in_kernel() -> bool:
    """Whether this program is the kernel of a notebook, and not IPython in a terminal."""
    shell = getattr(builtins, "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def html(answer: Any) -> str:
    """The fragment for the output of a cell, without a script and with its own style."""
    from whygpu.model.cause import Cause
    from whygpu.render.html.answers import fragment

    # A page of ours contains nothing from outside.
    if isinstance(answer, Cause):
        return fragment(answer)
    return fragment(public(answer, _NAMES.get(type(answer).__name__, ())))
