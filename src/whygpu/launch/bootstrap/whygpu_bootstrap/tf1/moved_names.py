"""Names that a module inside TensorFlow had in TensorFlow 1 and no longer has.

Programs import from `tensorflow.python...` although it is not public. Its functions have since
moved to other modules of the same package: array_ops.stack to array_ops_stack,
control_flow_ops.cond to cond. Most of them are public, and are found by their public name. Only the
program sees the names at their old place; libraries go on seeing the module as it is.
"""

import sys
import types

from whygpu_bootstrap import process_record
from whygpu_bootstrap.tf1 import imports, name_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NOTHING = object()
_OURS = "whygpu_bootstrap"
_PUBLIC = "tensorflow._api"
_OTHER_SURFACES = ("compat", "raw_ops")
"""TensorFlow 2's own, and the operations below the functions of the same name."""
_public_names: "dict[str, list[Any]]" = {}
"""What the public surface of TensorFlow 1 has under a name: (path, value)."""
_served: "set[str]" = set()


def serve(surface: "Any", module: "Any", path: str) -> None:
    """Give a module the names that it had; `path` is its path in the surface."""
    if path in _served:
        return
    _served.add(path)
    own = vars(module).get("__getattr__")

    def __getattr__(name: "Any") -> "Any":  # noqa: N807
        if own is not None:
            try:
                return own(name)
            except (AttributeError, ImportError):
                # What it refers to may be a package that is not installed.
                pass
        if not name.startswith("__") and _is_asked_by_program():
            value = _moved(surface, module, path, name)
            if value is not _NOTHING:
                return value
        raise AttributeError("module '%s' has no attribute '%s'" % (module.__name__, name))

    vars(module)["__getattr__"] = __getattr__


def _is_asked_by_program() -> bool:
    """Whether the attribute is looked up by the program, or by us on its behalf."""
    asking = sys._getframe(2).f_globals
    return str(asking.get("__name__")).startswith(_OURS) or imports.is_program(asking)


def _moved(surface: "Any", module: "Any", path: str, name: str) -> "Any":
    old = path + "." + name
    if name_tables.home_of(old) != old:
        return surface.module("tensorflow" + old[len("tf") :])
    target = name_tables.RENAMED.get(old)
    if target is None:
        target = _public_path(surface.root, module, name)
    if target is None:
        return _NOTHING
    process_record.note("--tf1: %s -> %s" % (old, name_tables.in_words(target)))
    return surface.resolve(target)


def _public_path(root: "Any", module: "Any", name: str) -> "str | None":
    """Where the name is public, if exactly one thing of that name is of the module's package.

    Names are short: tensor_shape.scalar is not tf.summary.scalar.
    """
    if not _public_names:
        _collect(root._base, "tf", set())
    package = module.__name__.rpartition(".")[0]
    found = [
        (path, value)
        for path, value in _public_names.get(name, ())
        if str(getattr(value, "__module__", "")).rpartition(".")[0] == package
    ]
    return found[0][0] if len({id(value) for _, value in found}) == 1 else None


def _collect(module: "Any", path: str, seen: "set[int]") -> None:
    seen.add(id(module))
    for name, value in list(vars(module).items()):
        if name.startswith("_") or name in _OTHER_SURFACES:
            continue
        if not isinstance(value, types.ModuleType):
            _public_names.setdefault(name, []).append((path + "." + name, value))
        elif id(value) not in seen and str(vars(value).get("__name__")).startswith(_PUBLIC):
            _collect(value, path + "." + name, seen)
