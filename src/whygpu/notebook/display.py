"""An answer as a notebook shows it. Notebooks are shared, so private data is removed first."""

from __future__ import annotations

from typing import Any

from whygpu.cli.output import public

_NAMES = {"LintReport": ("path",), "FileAnswer": ("file", "path")}
"""Fields that hold names of files, by the type of the answer. The reader opens files by them."""


def html(answer: Any) -> str:
    """The fragment for the output of a cell, without a script and with its own style."""
    from whygpu.model.cause import Cause
    from whygpu.render.html.answers import fragment

    # A page of ours contains nothing from outside.
    if isinstance(answer, Cause):
        return fragment(answer)
    return fragment(public(answer, _NAMES.get(type(answer).__name__, ())))
