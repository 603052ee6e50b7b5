"""The TensorFlow 1 surface of an installed TensorFlow 2.

A name of TensorFlow 1 is looked up, when the program first uses it, in this order: what
TensorFlow 2 keeps of it in `tf.compat.v1`; what name_tables says has taken its place; a module
inside the TensorFlow package. For a name that none of them has, the error says why.
"""

import atexit
import functools
import importlib
import importlib.util
import os
import sys
import types

from whygpu_bootstrap import process_record
from whygpu_bootstrap.frameworks import part
from whygpu_bootstrap.tf1 import name_tables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_state: "dict[str, Any]" = {}
_NOTHING = object()

KERAS_INSIDE = "2.6.0"
"""The release of Keras that TensorFlow 2 contains a copy of."""


def get() -> "Any":
    """The surface. Imports TensorFlow on first use; None if the program needs no surface."""
    if "surface" not in _state:
        _state["surface"] = None
        with process_record.noted("--tf1"):
            _state["surface"] = _load()
    return _state["surface"]


def _load() -> "Any":
    if os.environ.get("KERAS_BACKEND", "tensorflow") != "tensorflow":
        process_record.note("--tf1: KERAS_BACKEND asks for another backend; nothing was changed")
        return None
    _choose_legacy_keras()
    try:
        tensorflow = importlib.import_module("tensorflow")
    except ImportError:
        # The program's own import will report it.
        return None
    if tensorflow.__version__.startswith("1."):
        process_record.note("--tf1: TensorFlow %s needs no help" % tensorflow.__version__)
        return None
    v1 = importlib.import_module("tensorflow.compat.v1")
    _behave_as_before(v1)
    with process_record.noted("--tf1: watching for sessions"):
        _watch_for_sessions(v1)
    with process_record.noted("--tf1: old names of numpy"):
        part("tf1.numpy_names").restore()
    return Surface(tensorflow, v1)


def _choose_legacy_keras() -> None:
    """TensorFlow 1's Keras was Keras 2; TensorFlow reads this variable while it is imported."""
    if "TF_USE_LEGACY_KERAS" in os.environ or "tensorflow" in sys.modules:
        return
    if importlib.util.find_spec("tf_keras") is not None:
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
        process_record.note("--tf1: tf.keras -> tf_keras (TF_USE_LEGACY_KERAS=1)")


def _behave_as_before(v1: "Any") -> None:
    """Graphs and sessions, reference variables, Dimension objects, old control flow."""
    import warnings

    from tensorflow.python.util import deprecation

    with deprecation.silence():
        v1.disable_v2_behavior()
    # Each call of a layer would advise to use Keras instead.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"tensorflow\.python\.keras\.")
    process_record.note(
        "--tf1: TensorFlow %s behaves as TensorFlow 1 (graphs, sessions)" % v1.__version__
    )


def _watch_for_sessions(v1: "Any") -> None:
    """A program that builds a graph and never runs it was most likely not written for sessions."""
    from tensorflow.python.client import session

    begin = session.BaseSession.__init__

    @functools.wraps(begin)
    def seen(*args: "Any", **kwargs: "Any") -> None:
        _state["session"] = True
        begin(*args, **kwargs)

    session.BaseSession.__init__ = seen
    # Registered after process_record.finish, so it is called before that.
    atexit.register(_note_unused_graph, v1)


def _note_unused_graph(v1: "Any") -> None:
    with process_record.noted("--tf1: looking for an unused graph"):
        failed = getattr(sys, "last_value", None) is not None
        if failed or "session" in _state or v1.executing_eagerly():
            return
        if v1.get_default_graph().get_operations():
            process_record.note(
                "--tf1: the program built a graph and never ran it in a session; if it is "
                "written for TensorFlow 2, run it without --tf1"
            )


class Surface:
    """Everything that begins with `tensorflow` or `keras` in a program's imports."""

    def __init__(self, tensorflow: "Any", v1: "Any") -> None:
        self.tensorflow = tensorflow
        self.views = {}
        self.root = View(self, "tf", v1)
        self.views["tf"] = self.root
        for name in ("__version__", "__file__", "__path__", "__spec__", "__doc__"):
            setattr(self.root, name, getattr(tensorflow, name, None))
        for name in ("__git_version__", "__compiler_version__"):
            setattr(self.root, name, getattr(v1, name, None))

    def imported(self, name: "Any", fromlist: "Any") -> "Any":
        """What an import statement gives."""
        module = self.module(name)
        if not fromlist:
            return self.module(name.partition(".")[0])
        for item in fromlist:
            if item != "*" and not hasattr(module, item):
                self._import_below(module, name, item)
            self._serve(getattr(module, item, None), _path_of(name) + "." + item)
        return module

    def module(self, name: "Any") -> "Any":
        """The module that the program calls by this name."""
        path = _path_of(name)
        module = self.root
        walked = ["tf"]
        for word in path.split(".")[1:]:
            walked.append(word)
            try:
                module = getattr(module, word)
            except AttributeError as error:
                module = self.inside(".".join(walked))
                if module is None:
                    text = "No module named '%s': %s" % (name, error)
                    raise ModuleNotFoundError(text, name=name) from None
        self._serve(module, path)
        return module

    def _serve(self, module: "Any", path: str) -> None:
        """A module inside the package gets the names that it had, for the program."""
        if _is_inside(path) and isinstance(module, types.ModuleType):
            part("tf1.moved_names").serve(self, module, path)

    def _import_below(self, module: "Any", name: "Any", item: "Any") -> None:
        """`from a.b import c` where c is a module that b has no attribute for yet."""
        try:
            if name_tables.holds_no_modules(name):
                raise ModuleNotFoundError(name)
            found = self.module(name + "." + item)
        except ModuleNotFoundError:
            try:
                getattr(module, item)
            except AttributeError as error:
                text = "cannot import name '%s' from '%s': %s" % (item, name, error)
                raise ImportError(text, name=name) from None
        else:
            if isinstance(module, View):
                setattr(module, item, found)

    def inside(self, path: str) -> "Any":
        """A module inside the TensorFlow package that is no part of its public surface."""
        if not _is_inside(path):
            return None
        whole = _whole(path)
        try:
            return importlib.import_module(whole)
        except ModuleNotFoundError as error:
            if error.name is not None and not whole.startswith(error.name):
                raise
            return None

    def view(self, path: str, base: "Any") -> "Any":
        """The module at a path below tf; one object for each."""
        if path not in self.views:
            self.views[path] = View(self, path, base)
        return self.views[path]

    def resolve(self, target: "Any") -> "Any":
        """What a target of name_tables stands for."""
        kind, _, rest = target.partition(":")
        if kind == "own":
            module, _, name = rest.partition(":")
            own = part("tf1." + module)
            return getattr(own, name) if name else own
        if kind == "python":
            module, _, name = rest.partition(":")
            module = importlib.import_module(module)
            return getattr(module, name) if name else module
        if target == "tf":
            return self.root
        if target.startswith("tf2"):
            return _walk(self.tensorflow, target.split(".")[1:])
        return _walk(self.root, target.split(".")[1:])


def _path_of(name: "Any") -> "Any":
    """tensorflow.nn -> tf.nn, keras.layers -> tf.keras.layers, and old homes to new ones."""
    first, _, rest = name.partition(".")
    path = "tf.keras" if first == "keras" else "tf"
    whole = path + "." + rest if rest else path
    return name_tables.home_of(whole)


def _whole(path: str) -> str:
    return "tensorflow" + path[len("tf") :]


def _is_inside(path: str) -> bool:
    """Whether it is no part of the public surface."""
    return _whole(path).startswith(name_tables.INSIDE)


def _walk(thing: "Any", words: "Any") -> "Any":
    for word in words:
        thing = getattr(thing, word)
    return thing


class View(types.ModuleType):
    """One module of the surface. Names are looked up when they are first used, and kept."""

    def __init__(self, surface: "Any", path: str, base: "Any") -> None:
        super().__init__("tensorflow" + path[len("tf") :])
        self._surface = surface
        self._path = path
        self._base = base
        self.__path__ = []

    _kept: "Any" = vars(types.ModuleType)["__dict__"]
    """The names that have been looked up."""

    @property
    def __dict__(self) -> "dict[str, Any]":  # type: ignore[override]
        """Everything in the module, for programs that search tf.contrib.rnn.__dict__ for cells."""
        names = [name for name in dir(self) if not name.startswith("__")]
        values = {name: getattr(self, name, _NOTHING) for name in names}
        return {name: value for name, value in values.items() if value is not _NOTHING}

    def __getattr__(self, name: "Any") -> "Any":
        if name == "__all__":
            return [word for word in dir(self) if not word.startswith("_")]
        if name == "__version__" and self._path == "tf.keras":
            return _keras_version(self._base)
        if name == "Tensor" and self._path == "tf":
            return _tensor_class(self._base)
        if name.startswith("__"):
            raise AttributeError("module '%s' has no attribute '%s'" % (self.__name__, name))
        value = self._find(name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> "list[Any]":
        names = set(self._kept) - {"_surface", "_path", "_base"}
        try:
            names.update(dir(self._base) if self._base is not None else ())
        except ImportError:
            # What TensorFlow 2 loads there from Keras is not in Keras 3.
            pass
        names.update(name_tables.below(self._path))
        for source in name_tables.SOURCES.get(self._path, ()):
            try:
                names.update(_public(self._surface.resolve(source)))
            except ImportError:
                # The package may not be installed.
                pass
        return sorted(names)

    def _find(self, name: "Any") -> "Any":
        path = self._path + "." + name
        home = name_tables.home_of(path)
        if home != path:
            return self._surface.resolve(home)
        if path in name_tables.FIRST:
            return self._surface.resolve(name_tables.FIRST[path])
        value = self._in_base(path, name)
        if value is not _NOTHING:
            return value
        if path in name_tables.RENAMED:
            return self._stand_in(path, name_tables.RENAMED[path])
        if name_tables.is_package(path):
            return self._surface.view(path, None)
        for source in name_tables.SOURCES.get(self._path, ()):
            value = self._in_source(source, name)
            if value is not _NOTHING:
                return self._taken(source, value)
        inside = self._surface.inside(path)
        if inside is not None:
            return inside
        raise AttributeError(self._why_not(path, name))

    def _in_base(self, path: str, name: "Any") -> "Any":
        """What TensorFlow 2 keeps of TensorFlow 1 under this name."""
        if self._base is None:
            return _NOTHING
        if path in name_tables.KERAS_2_ONLY and _keras_is_3():
            with process_record.noted("--tf1: the Keras inside TensorFlow"):
                part("tf1.keras_inside").mend(KERAS_INSIDE)
            return self._surface.view(path, None)
        try:
            value = getattr(self._base, name)
        except (AttributeError, ImportError):
            return _NOTHING
        if isinstance(value, types.ModuleType) and _is_public_api(value):
            return self._surface.view(path, value)
        return value

    def _in_source(self, source: "Any", name: "Any") -> "Any":
        if source.startswith("own:"):
            module = self._surface.resolve(source)
            return getattr(module, name) if name in module.__all__ else _NOTHING
        try:
            return getattr(self._surface.resolve(source), name)
        except (AttributeError, ImportError):
            # This release does not have the module either.
            return _NOTHING

    def _stand_in(self, path: str, target: "Any") -> "Any":
        value = self._surface.resolve(target)
        _note(path, target)
        return value

    def _taken(self, source: "Any", value: "Any") -> "Any":
        if not isinstance(value, View):
            _note(self._path, source)
        return value

    def _why_not(self, path: str, name: "Any") -> "Any":
        missing = "module '%s' has no attribute '%s'" % (self.__name__, name)
        reason = name_tables.reason(path)
        if reason:
            return "%s; %s" % (missing, reason)
        try:
            _walk(self._surface.tensorflow, path.split(".")[1:])
        except (AttributeError, ImportError):
            return missing
        return "%s in TensorFlow 1; TensorFlow 2 has it: run the program without --tf1" % missing


def _tensor_class(v1: "Any") -> "Any":
    """What `type(tensor) is tf.Tensor` compares with.

    In TensorFlow 2 this is the base of two classes, one of tensors in a graph and one of eager
    tensors; in TensorFlow 1 a tensor in a graph was a tf.Tensor itself.
    """
    from tensorflow.python.framework import ops

    if v1.executing_eagerly_outside_functions():
        return v1.Tensor
    return getattr(ops, "SymbolicTensor", v1.Tensor)


def _is_public_api(module: "Any") -> bool:
    name = getattr(module, "__name__", "") if "_tfll_name" not in vars(module) else "keras"
    return name.startswith(name_tables.PUBLIC_API)


def _keras_is_3() -> bool:
    if os.environ.get("TF_USE_LEGACY_KERAS") in ("true", "True", "1"):
        return importlib.util.find_spec("tf_keras") is None
    try:
        return not importlib.import_module("keras").__version__.startswith("2.")
    except ImportError:
        # Before 2.6 Keras was a part of TensorFlow.
        return False


def _keras_version(base: "Any") -> "Any":
    if base is None:
        return KERAS_INSIDE
    package = importlib.import_module(base.__name__.partition(".")[0])
    return getattr(package, "__version__", KERAS_INSIDE)


def _public(module: "Any") -> "Any":
    names = getattr(module, "__all__", None)
    return names if names is not None else [n for n in dir(module) if not n.startswith("_")]


def _note(path: str, target: "Any") -> None:
    process_record.note("--tf1: %s -> %s" % (path, name_tables.in_words(target)))
