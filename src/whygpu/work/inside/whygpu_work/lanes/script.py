"""A script in a lane: it runs as usual, and what it records is kept."""

import importlib.util
import os
import runpy
import sys
import time

from ..loading import Unusable
from . import host_arrays
from .work import ProgramWork

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any


class ScriptEnded(Exception):
    """The script exited with a code that means failure."""


class ScriptLane(ProgramWork):
    kind = "script"

    def __init__(self, request: "dict[str, Any]") -> None:
        super(ScriptLane, self).__init__()
        if request["train"]:
            raise Unusable("--train trains models: expected a Keras model or file.py:function")
        self._path = request["what"]["path"]
        self._package = request["package"]
        self._counts: "dict[str, int]" = {}
        self._recorded: "list[tuple[Any, ...]]" = []

    def call(self) -> "list[Any]":
        """Run the script; its results are what it recorded."""
        whygpu: "Any" = provide_whygpu(self._package)
        whygpu.record = self._take
        sys.argv = [self._path]
        sys.path.insert(0, os.path.dirname(self._path))
        began = time.perf_counter()
        try:
            runpy.run_path(self._path, run_name="__main__")
        except SystemExit as end:
            if end.code not in (None, 0):
                raise ScriptEnded("%s ended with %r" % (os.path.basename(self._path), end.code))
        self.first_seconds = time.perf_counter() - began
        if not self._recorded:
            raise Unusable(
                "%s recorded nothing; expected calls of whygpu.record(name, array) for what is to "
                "be compared" % os.path.basename(self._path)
            )
        return self._recorded

    def _take(self, name: str, array: "Any") -> None:
        """Replaces whygpu.record. A name that is used again gets a number."""
        name = str(name)
        self._counts[name] = self._counts.get(name, 0) + 1
        if self._counts[name] > 1:
            name = "%s#%d" % (name, self._counts[name])
        self.note_devices(array)
        self._recorded += [
            (inner, values.copy(), dtype)
            for inner, values, dtype in host_arrays.all_on_host(array, name)
        ]


def provide_whygpu(folder: str) -> "types.ModuleType":
    """Import the whygpu that runs the comparison, whether or not this environment has one."""
    path = os.path.join(folder, "__init__.py")
    spec: "Any" = importlib.util.spec_from_file_location(
        "whygpu", path, submodule_search_locations=[folder]
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules["whygpu"] = module
    spec.loader.exec_module(module)
    return module
