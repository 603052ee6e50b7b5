"""The command for another process of whygpu's own Python, isolated like the first one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

_SEARCH_PATH = "WHYGPU_SEARCH_PATH"
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
"""The folder that contains the package."""


def own_command(python: str, module: str, words: Sequence[str] = ()) -> tuple[str, ...]:
    """The command that runs main() of a module of whygpu. Start it with own_environ().

    With -I, the user's modules on PYTHONPATH or in the current folder cannot replace whygpu's.
    These folders are searched last, because whygpu itself may be installed in one of them.
    """
    code = (
        f"import os, sys; sys.path += os.environ.pop('{_SEARCH_PATH}').split(os.pathsep); "
        f"from {module} import main; main()"
    )
    return (python, "-I", "-c", code, *words)


def verb_command(words: Sequence[str]) -> tuple[str, ...]:
    """The command line `whygpu` with these words, in this copy of whygpu, whatever PATH has."""
    return (sys.executable, "-I", os.path.join(_ROOT, "whygpu", "__main__.py"), *words)


def own_environ(environ: Mapping[str, str]) -> dict[str, str]:
    folders = [_ROOT, *(folder for folder in sys.path if folder)]
    return {**environ, _SEARCH_PATH: os.pathsep.join(folders)}
