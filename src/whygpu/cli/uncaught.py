"""whygpu.install(): uncaught exceptions are explained below their traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from whygpu.model.explanation import Explanation


def install() -> None:
    """From now on, explain uncaught exceptions that have to do with the GPU.

    Those that end the program, those of threads, and those of notebook cells.

    Example:
        whygpu.install()
    """
    from whygpu.api import explain_uncaught

    explain_uncaught(_text)


def _text(explanation: Explanation) -> str:
    from whygpu.render.explain_text import render

    return render(explanation, width=80, color=False, verbose=False)
