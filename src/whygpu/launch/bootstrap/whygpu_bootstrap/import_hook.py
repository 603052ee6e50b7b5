"""Calls a function right after the import of a module. Imports nothing itself."""

import sys

from whygpu_bootstrap import process_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_callbacks: "dict[Any, Any]" = {}


class Finder:
    """Lets the other finders find a watched module, and adds a call to the end of its execution."""

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name not in _callbacks:
            return None
        spec = self._found_by_others(name, path, target)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            with process_record.noted("watching the import of %s" % name):
                _extend(spec.loader, name)
        return spec

    def _found_by_others(self, name: str, path: "Any", target: "Any") -> "Any":
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec = find_spec(name, path, target)
            if spec is not None:
                return spec
        return None


# Compiled under the file name of Python's import machinery: Python leaves its frames out of
# tracebacks and of the stack levels of warnings, so the program prints what it prints without us.
_SOURCE = """
def extended(loader, execute, afterwards):
    def exec_module(module):
        vars(loader).pop("exec_module", None)
        execute(module)
        afterwards()
    return exec_module
"""
_names: "dict[Any, Any]" = {}
exec(compile(_SOURCE, "<frozen importlib._bootstrap_external>", "exec"), _names)


def _extend(loader: "Any", name: str) -> None:
    """Changes the loader object itself, so that the program sees its usual loader."""
    execute = loader.exec_module
    loader.exec_module = _names["extended"](loader, execute, lambda: _call_back(name))


def _call_back(name: str) -> None:
    # A module may replace itself in sys.modules while it executes, as TensorFlow 1 does.
    module = sys.modules.get(name)
    for callback in _callbacks.pop(name, ()):
        with process_record.noted("what follows the import of %s" % name):
            callback(module)


def after_import(name: str, callback: "Callable[[Any], None]") -> None:
    """Call callback(module) once the module has been imported: now, if it has been already."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    if module is not None and not getattr(spec, "_initializing", False):
        with process_record.noted("what follows the import of %s" % name):
            callback(module)
        return
    _callbacks.setdefault(name, []).append(callback)
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())


def finish() -> None:
    """Write the record of this process now; otherwise that happens at its end."""
    process_record.finish()
