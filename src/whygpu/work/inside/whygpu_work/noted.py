"""Loads a model that a program under `whygpu run` noted when memory ran out, without weights.

The bootstrap's memory/work_*.py wrote it. Classes of the program's own file are made by running the
file's imports and definitions, and nothing else of it.
"""

import __future__

import ast
import base64
import functools
import importlib
import io
import json
import operator
import pickle
import sys
import types

from .loading import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

DEFINITIONS = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

_FROM_FUTURE = functools.reduce(
    operator.or_,
    [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names],
)


def load(path: str) -> "Any":
    """A Keras model, or (module, example_inputs) for PyTorch."""
    with open(path, encoding="utf-8") as stream:
        noted = json.load(stream)
    sys.path.extend(each for each in noted["search_path"] if each not in sys.path)
    program = Program(noted["program"], noted["package"])
    saved = json.loads(noted["data"])
    if noted["of"] == "torch":
        return _torch_call(saved, program)
    model = _keras_model(saved, program)
    _check_shapes(model, saved["shapes"], noted["input"])
    return model


class Program(object):
    """The program's own file, and the package that it was started as a part of."""

    def __init__(self, path: str, package: str) -> None:
        self.path = path
        self.package = package


def definitions(program: "Program", names: "dict[str, Any]") -> "types.ModuleType":
    """The program's file as a module that knows its constants, and has done nothing."""
    path = program.path
    if path is None:
        raise Unusable("the program's own classes are not in a file")
    with open(path, "rb") as stream:
        tree = ast.parse(stream.read(), path)
    flags = compile(tree, path, "exec", 0, True).co_flags & _FROM_FUTURE
    module = types.ModuleType("whygpu_program")
    module.__file__ = path
    module.__package__ = program.package
    # Classes are looked up by the name of their module, for example by pickle.
    sys.modules[module.__name__] = module
    vars(module).update(names)
    for node in list(tree.body):
        if not isinstance(node, DEFINITIONS) and not _is_about_imports(node):
            continue
        tree.body = [node]
        try:
            exec(compile(tree, path, "exec", flags, True), vars(module))
        except Exception as error:
            # The definition may not be needed; if it is, the error is reported then.
            vars(module)["whygpu_failed"] = "%s: %s" % (type(error).__name__, error)
    return module


def _is_about_imports(node: "ast.stmt") -> bool:
    """try: import this, except ImportError: import that."""
    return isinstance(node, ast.Try) and all(
        isinstance(each, (ast.Import, ast.ImportFrom)) for each in node.body
    )


def _keras_model(saved: "dict[str, Any]", program: "Program") -> "Any":
    import keras

    try:
        return _keras_restored(keras, saved, {})
    except (AttributeError, ImportError, TypeError, ValueError):
        # The model uses definitions of the program, whose imports are slow: they run only here.
        own = vars(definitions(program, saved["names"]))
        return _keras_restored(keras, saved, {k: v for k, v in own.items() if callable(v)})


def _check_shapes(model: "Any", shapes: "Any", given: "Any") -> None:
    """A configuration may omit something; then it describes another model, with other memory."""
    if shapes is None:
        return
    from .work_keras import KerasWork

    # This builds the model if it is not built yet.
    KerasWork(model, None, given)
    if [list(each.shape) for each in model.variables] != shapes:
        raise Unusable(
            "the configuration of %s gives a different model: its class needs a get_config() with "
            "all its arguments" % type(model).__name__
        )


def _keras_restored(keras: "Any", saved: "dict[str, Any]", own: "dict[str, Any]") -> "Any":
    with keras.saving.custom_object_scope(own):
        model = _keras_made(keras, saved, own)
        if saved["compile"]:
            model.compile(**keras.saving.deserialize_keras_object(saved["compile"]))
    return model


def _keras_made(keras: "Any", saved: "dict[str, Any]", own: "dict[str, Any]") -> "Any":
    try:
        return keras.saving.deserialize_keras_object(saved["model"], safe_mode=False)
    except TypeError:
        kind = own.get(saved["model"]["class_name"]) or _imported(saved["model"])
        if kind is None or saved["made_with"] is None:
            raise
    # A subclass of Model whose configuration is not what its own class takes.
    return kind(**keras.saving.deserialize_keras_object(saved["made_with"]))


def _imported(saved: "dict[str, Any]") -> "Any":
    """The class of a model, if it is in a module that the program imported."""
    if saved["module"] == "__main__":
        return None
    return getattr(importlib.import_module(saved["module"]), saved["class_name"], None)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: "Any", tensors: "Sequence[Any]", program: "Program") -> None:
        pickle.Unpickler.__init__(self, file)
        self._tensors = tensors
        self._program = program
        self._own: "types.ModuleType | None" = None
        self.names: "dict[str, Any]" = {}
        """The program's constants."""

    def persistent_load(self, number: "Any") -> "Any":
        return self._tensors[number]

    def find_class(self, module: str, name: str) -> "Any":
        if module != "__main__":
            return pickle.Unpickler.find_class(self, module, name)
        if self._own is None:
            self._own = definitions(self._program, self.names)
        found: "Any" = self._own
        for part in name.split("."):
            found = getattr(found, part, None)
        if found is None:
            why = getattr(self._own, "whygpu_failed", "its file does not define it")
            raise Unusable(
                "the program's %s cannot be loaded without running the program (%s)" % (name, why)
            )
        return found


def _torch_call(saved: "dict[str, Any]", program: "Program") -> "tuple[Any, Any]":
    from .noted_torch import NotedCall, tensor

    tensors = [tensor(described) for described in saved["tensors"]]
    file = io.BytesIO(base64.b64decode(saved["pickle"]))
    unpickler = _Unpickler(file, tensors, program)
    unpickler.names = unpickler.load()
    module, args, kwargs = unpickler.load()
    devices = {id(each): entry["device"] for each, entry in zip(tensors, saved["tensors"])}
    call = NotedCall(module, args, kwargs, devices)
    return call, call.examples
