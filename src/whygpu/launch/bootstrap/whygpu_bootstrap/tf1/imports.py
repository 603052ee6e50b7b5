"""TensorFlow 1 programs on TensorFlow 2: who in a process sees which TensorFlow.

The program sees the names that TensorFlow 1 had (surface.py). TensorFlow itself, Keras and every
other installed library go on seeing the TensorFlow 2 that they were written for. Both are in one
process, so the meaning of `import tensorflow` depends on the importing module. That is decided
here. Nothing is loaded before the program asks for it.
"""

import builtins
import importlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = ("tensorflow", "keras")

# Their commands (`python -m tensorboard.main`) are not TensorFlow 1 programs.
_LIBRARIES = ("tensorflow", "keras", "tf_keras", "tensorboard", "whygpu_bootstrap")

_standard_library = os.path.dirname(os.__file__) + os.sep


def install() -> None:
    """Called before the first line of the program; imports nothing that the program would not."""
    builtins.__import__ = _deciding(builtins.__import__)
    importlib.import_module = _deciding_by_name(importlib.import_module)


def _deciding(original: "Any") -> "Any":
    def __import__(  # noqa: N807
        name: "Any",
        globals: "Any" = None,
        locals: "Any" = None,
        fromlist: "Any" = (),
        level: "Any" = 0,
    ) -> "Any":
        if level == 0 and name.partition(".")[0] in NAMES:
            caller = sys._getframe(1).f_globals if globals is None else globals
            if is_program(caller):
                surface = _surface()
                if surface is not None:
                    return surface.imported(name, fromlist)
        return original(name, globals, locals, fromlist, level)

    return __import__


def _deciding_by_name(original: "Any") -> "Any":
    def import_module(name: "Any", package: "Any" = None) -> "Any":
        if name.partition(".")[0] in NAMES and is_program(sys._getframe(1).f_globals):
            surface = _surface()
            if surface is not None:
                return surface.imported(name, ("__name__",))
        return original(name, package)

    import_module.__doc__ = original.__doc__
    return import_module


def is_program(module_globals: "Any") -> bool:
    """Whether these are the globals of the user's program, rather than of an installed library."""
    name = module_globals.get("__name__") or "__main__"
    spec = module_globals.get("__spec__")
    package = (getattr(spec, "name", None) or name).partition(".")[0]
    if package in _LIBRARIES:
        return False
    if name in ("__main__", "__mp_main__") or package == _package_of_main():
        return True
    path = module_globals.get("__file__") or getattr(spec, "origin", None)
    if not path:
        return True
    return not _is_installed(os.path.abspath(path))


def _package_of_main() -> "Any":
    """The package that `python -m package.module` runs."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec.name.partition(".")[0] if spec is not None else None


def _is_installed(path: str) -> bool:
    folders = path.split(os.sep)
    if "site-packages" in folders or "dist-packages" in folders:
        return True
    return path.startswith(_standard_library)


def _surface() -> "Any":
    """What the program sees; None if it sees the installed TensorFlow as it is."""
    from whygpu_bootstrap.frameworks import part

    return part("tf1.surface").get()
