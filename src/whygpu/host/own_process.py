"""A further process of whygpu's own Python, isolated as the first one is."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

_SEARCH_PATH = "WHYGPU_SEARCH_PATH"
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder that holds the package."""


def own_command(python: str, module: str, words: Sequence[str] = ()) -> tuple[str, ...]:
    """Runs main() of a module of ours; to be started with own_environ().

    With -I, modules of the user's on PYTHONPATH or in the current folder are not imported instead
    of ours. What only they can provide is still found, because whygpu itself may lie among them.
    """
    code = (
        f"import os, sys; sys.path += os.environ.pop('{_SEARCH_PATH}').split(os.pathsep); "
        f"from {module} import main; main()"
    )
    return (python, "-I", "-c", code, *words)


def own_environ(environ: Mapping[str, str]) -> dict[str, str]:
    folders = [_ROOT, *(folder for folder in sys.path if folder)]
    return {**environ, _SEARCH_PATH: os.pathsep.join(folders)}
