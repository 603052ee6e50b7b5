"""Starts whygpu's part in a program's process, then makes way for the program's own sitecustomize.

Python imports this module at start-up because `whygpu run` puts its folder first on PYTHONPATH.
Afterwards the folder is off sys.path again, and the name `sitecustomize` belongs to whichever
module would have had it without us.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def _start() -> None:
    if sys.version_info < (3, 6) or "WHYGPU_BOOTSTRAP_SETTINGS" not in os.environ:
        return
    writes_bytecode = sys.dont_write_bytecode
    # Nothing of the target's Python is left in whygpu's folder.
    sys.dont_write_bytecode = True
    try:
        import whygpu_bootstrap

        whygpu_bootstrap.start()
    except Exception:
        # The program is worth more than our part in it, and there is no record to note this in.
        pass
    finally:
        sys.dont_write_bytecode = writes_bytecode


def _is_ours(path: str) -> bool:
    try:
        return os.path.samefile(path, _FOLDER)
    except OSError:
        return False


def _find_next() -> "Any":
    """The sitecustomize that Python would have found without us."""
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec("sitecustomize", None) if find_spec is not None else None
        if spec is not None and spec.loader is not None:
            return spec
    return None


try:
    _start()
finally:
    sys.path[:] = [path for path in sys.path if not _is_ours(path)]

_spec = _find_next()
if _spec is not None:
    try:
        # Where importlib.util has it from, which itself would import a dozen modules.
        from _frozen_importlib import module_from_spec as _module_from_spec
    except ImportError:
        from importlib.util import module_from_spec as _module_from_spec

    _module = _module_from_spec(_spec)
    sys.modules["sitecustomize"] = _module
    # What it raises goes to `site`, which reports it as it always does.
    _spec.loader.exec_module(_module)
