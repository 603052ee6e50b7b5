"""Loads what the user named: a Keras model's file, a function of a Python file, or a script."""

import importlib
import importlib.util
import inspect
import os
import sys

from . import archives

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Callable


class Unusable(Exception):
    """What the user named cannot be used like this; the message says what can."""

    task_failure = "unusable"


class CannotTell(Unusable):
    """It can be used, but the question has no answer for it; the message says why."""

    task_failure = "cannot-tell"


def load(what: "dict[str, Any]", batch_size: "int | None" = None) -> "Any":
    """The model of a file, what the user's function returns, or what a program noted.

    A function is called with batch_size if it has a parameter of that name, or one required
    parameter; else without arguments. A model that is defined in the file is used as it is.
    """
    if what["kind"] == "model-file":
        return load_model(what["path"])
    if what["kind"] == "noted":
        from . import noted

        return noted.load(what["path"])
    value = attribute(what["path"], what["name"])
    if is_model(value) or not callable(value):
        return value
    return call(value, batch_size)


def load_model(path: str) -> "Any":
    from . import model_file

    try:
        archives.check(path)
    except archives.Bomb as error:
        raise Unusable("%s is not loaded: %s" % (path, error))
    model_file.check(path)
    import keras

    load = keras.saving.load_model if hasattr(keras, "saving") else keras.models.load_model
    # Since Keras 2.13. It is the default there, unless code of the environment changed it.
    safely = {"safe_mode": True} if _has_parameter(load, "safe_mode") else {}
    try:
        return load(path, **safely)
    except (TypeError, ValueError, OSError) as error:
        raise Unusable(
            "%s cannot be loaded by Keras %s: %s; if it has layers of your own, name a function "
            "that builds it: file.py:build_model" % (path, keras.__version__, error)
        )


def _has_parameter(function: "Callable[..., Any]", name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def need_keras_3() -> None:
    """Raise Unusable if the installed Keras is older."""
    import keras

    if int(keras.__version__.split(".")[0]) < 3:
        raise Unusable(
            "Keras %s: estimates are made for Keras 3, which TensorFlow has since 2.16"
            % keras.__version__
        )


def attribute(path: str, name: str) -> "Any":
    """An attribute of a file, which is executed as a module with its folder on sys.path."""
    value = run_file(path)
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise Unusable("%s has no %r" % (path, name))
    return value


def run_file(path: str) -> "types.ModuleType":
    """The file as a module of its own name: `if __name__ == "__main__"` is false in it."""
    folder, name = place_of(path)
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == path:
        return sys.modules[name]
    if folder not in sys.path:
        sys.path.insert(0, folder)
    if "." in name:
        return importlib.import_module(name)
    spec: "Any" = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    # Classes of the file are looked up by its name, for example by pickle.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def place_of(path: str) -> "tuple[str, str]":
    """The folder to import a file from, and its name there: a.b for a part of a package, so that
    its relative imports work."""
    folder, file_name = os.path.split(path)
    name = os.path.splitext(file_name)[0]
    while os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.basename(folder):
        folder, package = os.path.split(folder)
        name = "%s.%s" % (package, name)
    return folder, name


def call(function: "Callable[..., Any]", batch_size: "int | None") -> "Any":
    parameter = batch_parameter(function)
    if parameter is None:
        return function()
    if batch_size is None:
        raise Unusable("%s takes a batch size: give one with --batch" % function.__name__)
    return function(**{parameter: batch_size})


def batch_parameter(function: "Callable[..., Any]") -> "str | None":
    """The parameter that takes the batch size; None if the function has none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    by_name = [each.name for each in parameters if each.kind is not each.POSITIONAL_ONLY]
    if "batch_size" in by_name:
        return "batch_size"
    required = [
        each
        for each in parameters
        if each.default is each.empty
        and each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]
    if len(required) > 1:
        raise Unusable(
            "%s needs the arguments %s: expected a function without arguments, or with batch_size"
            % (function.__name__, ", ".join(each.name for each in required))
        )
    return required[0].name if required else None


def is_model(value: "Any") -> bool:
    return is_keras_model(value) or is_torch_module(value)


def is_keras_model(value: "Any") -> bool:
    keras = sys.modules.get("keras")
    return keras is not None and hasattr(keras, "Model") and isinstance(value, keras.Model)


def is_torch_module(value: "Any") -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "nn") and isinstance(value, torch.nn.Module)
