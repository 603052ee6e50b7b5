"""Where in the code a sampled frame is: file, function, line, and the expression if it is known.

Each place is looked at once: a sample only looks up its number.
"""

import builtins
import inspect
import os
import sys
import sysconfig

from whygpu_bootstrap.profile import called_objects

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Iterable, Iterator

OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
OWN_LIBRARY = os.path.join(OWN, "tf1") + os.sep
"""What `--tf1` puts in the place of functions that are gone, such as those of NumPy. The program
calls it instead of them."""
PACKAGES = ("/site-packages/", "/dist-packages/")
MOST_PLACES = 50000
NOT_KEPT = {"origin": "whygpu", "file": "", "function": "", "line": 0}
"""The place with the number 0 stands for those that are too many: a program may make code as it
runs. Samples that end there are of unknown kind."""
FRAMEWORKS = ("torch", "tensorflow", "jax", "jaxlib", "keras", "tf_keras", "numpy")


class Places:
    """The places that were seen, by number."""

    def __init__(self) -> None:
        self._numbers: "dict[Any, int]" = {}
        self._codes: "list[Any]" = []
        """Keeps the code objects alive, so that their ids stay theirs."""
        self._found: "list[dict[str, Any]]" = [NOT_KEPT]
        self._origins: "dict[str, tuple[str, str]]" = {}
        self._roots = tuple(_library_roots())
        self._installed = tuple(_installed_folders())
        self._calls_of_modules: "dict[int, types.CodeType]" = {}

    def reads_mode_of(self, call: "types.CodeType") -> None:
        """Tell apart calls of modules in training and in evaluation mode. They have this code."""
        self._calls_of_modules[id(call)] = call

    def of(self, frame: "types.FrameType", leaf: bool) -> int:
        code, at = frame.f_code, frame.f_lasti
        mode = _mode_of(frame) if id(code) in self._calls_of_modules else ""
        key = (id(code), at, leaf, mode)
        number = self._numbers.get(key)
        if number is None:
            if len(self._found) >= MOST_PLACES:
                return 0
            number = self._numbers[key] = len(self._found)
            self._codes.append(code)
            place = self._place(frame, code, at, leaf)
            if mode:
                place["mode"] = mode
            self._found.append(place)
        return number

    def of_the_program(self, functions: "Iterable[tuple[str, str]]") -> "list[dict[str, str]]":
        """Those of these functions that the program defines, with the file to show."""
        found = []
        for path, name in functions:
            origin, file = self._origin(path)
            if origin == "program":
                found.append({"file": file, "function": name})
        return found

    def _place(
        self, frame: "types.FrameType", code: "types.CodeType", at: int, leaf: bool
    ) -> "dict[str, Any]":
        path = code.co_filename
        if path not in self._origins:
            self._origins[path] = self._origin(path)
        origin, name = self._origins[path]
        line = frame.f_lineno or code.co_firstlineno
        place: "dict[str, Any]" = {
            "origin": origin,
            "file": name,
            "function": code.co_name,
            "line": line,
        }
        if code.co_flags & inspect.CO_GENERATOR:
            place["generator"] = True
        if origin == "program":
            place["text"] = called_objects.expression(code, at, line, frame.f_globals)
            if leaf:
                place["calls"] = called_objects.called(frame, code, at, place["text"])
        return place

    def _origin(self, path: str) -> "tuple[str, str]":
        """("program" or "library" or ..., the name to show)."""
        plain = path.replace(os.sep, "/")
        cell = notebook_cell(path)
        if cell:
            return "program", cell
        if path.startswith(OWN_LIBRARY):
            return "library", "whygpu/" + os.path.basename(path)
        if path.startswith(OWN):
            return "whygpu", os.path.basename(path)
        if "__autograph_generated" in plain or "/torchinductor_" in plain:
            return "library", "generated/" + os.path.basename(plain)
        for folder in PACKAGES:
            if folder in plain:
                return "library", plain.rpartition(folder)[2]
        for root in self._roots:
            if path.startswith(root[0]):
                return root[1], path[len(root[0]) :].lstrip(os.sep).replace(os.sep, "/")
        for folder in self._installed:
            if path.startswith(folder):
                return "library", path[len(folder) :].replace(os.sep, "/")
        if path.startswith("<frozen"):
            return "standard", path
        if path.startswith("<"):
            return "generated", path
        return "program", os.path.abspath(path)

    def all(self) -> "list[dict[str, Any]]":
        return self._found


def notebook_cell(path: str) -> str:
    """The name of the cell that IPython has compiled as this file; empty if it is something else.

    The file has a number that no notebook shows, and does not exist.
    """
    if path.startswith("<ipython-input-"):
        # Before IPython 8.
        return "Cell In[%s]" % path.split("-")[2]
    shell = getattr(builtins, "get_ipython", lambda: None)()
    # New in IPython 8. It returns ("Cell", "In[3]"), or None.
    named = getattr(getattr(shell, "compile", None), "format_code_name", lambda path: None)(path)
    return " ".join(named) if named else ""


def _installed_folders() -> "Iterator[str]":
    """Folders of packages that pip has installed elsewhere: pip install --target, PYTHONPATH.

    Not the one of the program itself, which may have its packages beside it.
    """
    main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    own = os.path.dirname(os.path.abspath(main)) if main else os.getcwd()
    for folder in sys.path:
        # Programs put paths of other types there as well; Python ignores all but text and bytes.
        if not isinstance(folder, str) or not folder or os.path.abspath(folder) == own:
            continue
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        if any(name.endswith(".dist-info") for name in names):
            yield os.path.join(folder, "")


def _mode_of(frame: "types.FrameType") -> str:
    """Of the module that this frame calls; empty if that is not known."""
    module = called_objects.local_variable("self", frame)
    training = getattr(module, "__dict__", {}).get("training")
    if not isinstance(training, bool):
        return ""
    return "training" if training else "evaluation"


def _library_roots() -> "Any":
    """Folders of code that is not the program's: frameworks wherever they are, and Python's own."""
    for name in FRAMEWORKS:
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if file:
            # With the name of the package, as below site-packages.
            yield os.path.dirname(os.path.dirname(os.path.abspath(file))) + os.sep + name, "library"
    for kind in ("stdlib", "platstdlib"):
        folder = sysconfig.get_paths().get(kind)
        if folder:
            yield folder + os.sep, "standard"
