"""Loads the bootstrap into a process, then imports the program's own sitecustomize.

Python imports this module at start-up because `whygpu run` puts its folder first on PYTHONPATH.
Afterwards the folder is removed from sys.path, and the name `sitecustomize` belongs to the module
that would have had it without us.
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
    # The target's Python must not write bytecode into whygpu's folder.
    sys.dont_write_bytecode = True
    try:
        import whygpu_bootstrap

        whygpu_bootstrap.start()
    except Exception:
        # The program matters more than our part in it, and there is no record for a note.
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
        # importlib.util takes it from here, and would itself import a dozen modules.
        from _frozen_importlib import module_from_spec as _module_from_spec
    except ImportError:
        from importlib.util import module_from_spec as _module_from_spec

    _module = _module_from_spec(_spec)
    sys.modules["sitecustomize"] = _module
    # An exception goes to `site`, which reports it as usual.
    _spec.loader.exec_module(_module)
