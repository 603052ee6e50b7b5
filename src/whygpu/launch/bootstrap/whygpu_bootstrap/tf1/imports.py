"""TensorFlow 1 programs on TensorFlow 2: who in a process sees which TensorFlow.

The program sees the names that TensorFlow 1 had (surface.py). TensorFlow itself, Keras and every
other installed library go on seeing the TensorFlow 2 that they were written for. Both are in one
process, so the meaning of `import tensorflow` depends on the importing module. That is decided
here. Nothing is loaded before the program asks for it.
"""

import builtins
import importlib
import importlib.util
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = ("tensorflow", "keras")

ESTIMATOR = "tensorflow_estimator"
"""The package behind tf.estimator; newer releases of TensorFlow do not install it."""

SCIPY = "scipy"
"""Its names are restored before the program imports it; the import itself is Python's."""

# Their commands (`python -m tensorboard.main`) are not TensorFlow 1 programs.
_LIBRARIES = ("tensorflow", "keras", "tf_keras", "tensorboard", "whygpu_bootstrap")

_standard_library = os.path.dirname(os.__file__) + os.sep


# Compiled under the file name of Python's import machinery, with the name of its function whose
# frames Python leaves out: of tracebacks through nested imports, and of the levels of warnings.
_SOURCE = """
def deciding(original, decide):
    def _call_with_frames_removed(
        name, globals=None, locals=None, fromlist=(), level=0
    ):
        found = decide(name, globals, fromlist, level)
        if found is not None:
            return found
        return original(name, globals, locals, fromlist, level)
    return _call_with_frames_removed

def deciding_by_name(original, decide):
    def _call_with_frames_removed(name, package=None):
        found = decide(name, None, ("__name__",), 0)
        return original(name, package) if found is None else found
    return _call_with_frames_removed
"""
_names: "dict[str, Any]" = {}
exec(compile(_SOURCE, "<frozen importlib._bootstrap>", "exec"), _names)


def install() -> None:
    """Called before the first line of the program; imports nothing that the program would not."""
    builtins.__import__ = _wrapped(builtins.__import__, "deciding")
    importlib.import_module = _wrapped(importlib.import_module, "deciding_by_name")
    sys.excepthook = _printing_without_our_frames


def _wrapped(original: "Any", maker: str) -> "Any":
    wrapper = _names[maker](original, _decided)
    _our_code.add(wrapper.__code__)
    wrapper.__name__ = original.__name__
    wrapper.__doc__ = original.__doc__
    return wrapper


def _decided(name: "Any", globals: "Any", fromlist: "Any", level: "Any") -> "Any":
    """What an import by the program gives; None for an import that is none of our business."""
    first = name.partition(".")[0]
    if level != 0 or (first not in NAMES and first not in (SCIPY, ESTIMATOR)):
        return None
    caller = sys._getframe(2).f_globals if globals is None else globals
    if not is_program(caller):
        return None
    if first == SCIPY:
        _restore_scipy(name, fromlist)
        return None
    if first == ESTIMATOR and importlib.util.find_spec(ESTIMATOR) is not None:
        return None
    surface = _surface()
    return None if surface is None else surface.imported(name, fromlist)


_our_code: "set[Any]" = set()
_OUR_FILES = (__file__, os.path.join(os.path.dirname(__file__), "surface.py"))


def _printing_without_our_frames(kind: "Any", error: "Any", trace: "Any") -> None:
    """Python leaves out our frames of nested imports; the one of the outermost import is left."""
    try:
        chain, seen = [error], set()
        while chain:
            each = chain.pop()
            if each is not None and id(each) not in seen:
                seen.add(id(each))
                _unlink(each.__traceback__)
                chain += [each.__cause__, each.__context__]
    except Exception:
        # Python 3.6 does not let a traceback be changed: the frame is shown.
        pass
    sys.__excepthook__(kind, error, trace)


def _unlink(trace: "Any") -> None:
    while trace is not None:
        while trace.tb_next is not None and _is_ours(trace.tb_next.tb_frame.f_code):
            trace.tb_next = trace.tb_next.tb_next
        trace = trace.tb_next


def _is_ours(code: "Any") -> bool:
    return code in _our_code or code.co_filename in _OUR_FILES


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


def _restore_scipy(name: str, fromlist: "Any") -> None:
    from whygpu_bootstrap import process_record
    from whygpu_bootstrap.frameworks import part

    with process_record.noted("--tf1: names of scipy"):
        for each in [name] + [name + "." + item for item in fromlist or ()]:
            part("tf1.scipy_names").restore(each)


def _surface() -> "Any":
    """What the program sees; None if it sees the installed TensorFlow as it is."""
    from whygpu_bootstrap.frameworks import part

    return part("tf1.surface").get()
