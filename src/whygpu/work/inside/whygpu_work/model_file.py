"""Checks the file of a Keras model before Keras loads it: would that execute code of the file?

A file may come from anyone. Keras refuses the code of a Lambda layer in some releases and formats,
and executes it in others (Keras 2, and HDF5 files in Keras 3 before 3.11.3); some releases import
any module that a file names. So the configuration is read here, without Keras, and a file that
would execute its own code is refused.
"""

import importlib.util
import json
import os
import zipfile

from .loading import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONFIGURATION = "config.json"
LARGEST = 256 << 20
"""Bytes of a configuration; a model of thousands of layers has a few million."""
HDF5 = b"\x89HDF\r\n\x1a\n"
ATTRIBUTES = ("model_config", "training_config")
LAMBDA = "a Lambda layer (%s)"
WAY_OUT = "if you trust it, name a function of yours that loads it: file.py:load_it"


def check(path: str) -> None:
    """Raise Unusable if loading the file would execute code that it holds."""
    for configuration in configurations(path):
        found = first_code(configuration)
        if found is not None:
            raise Unusable(
                "%s has %s, which is code that Keras would execute, and whygpu executes none out "
                "of a model's file; %s" % (path, found, WAY_OUT)
            )


def configurations(path: str) -> "list[Any]":
    """The JSON values in the file that describe the model.

    A file can be a zip archive and HDF5 at once, and releases of Keras differ in which they read:
    both are checked.
    """
    found = None
    try:
        if zipfile.is_zipfile(path):
            found = _of_zip(path)
        if _is_hdf5(path):
            found = (found or []) + _of_hdf5(path)
    except (OSError, ValueError, LookupError, RuntimeError, zipfile.BadZipFile) as error:
        raise Unusable("%s cannot be read: %s: %s" % (path, type(error).__name__, error))
    if found is None:
        raise Unusable("%s is not a Keras file: expected a .keras archive or HDF5" % path)
    return found


def _of_zip(path: str) -> "list[Any]":
    with zipfile.ZipFile(path) as archive, archive.open(CONFIGURATION) as stream:
        text = stream.read(LARGEST + 1)
    if len(text) > LARGEST:
        raise ValueError("its configuration has more than %d MiB" % (LARGEST >> 20))
    return [json.loads(text.decode("utf-8"))]


def _is_hdf5(path: str) -> bool:
    with open(path, "rb") as stream:
        if stream.read(len(HDF5)) == HDF5:
            return True
    try:
        import h5py
    except ImportError:
        return False
    # HDF5 may begin after a user block.
    return h5py.is_hdf5(path)


def _of_hdf5(path: str) -> "list[Any]":
    try:
        import h5py
    except ImportError:
        raise Unusable("%s is an HDF5 file, and h5py is not installed beside Keras" % path)
    found = []
    with h5py.File(path, "r") as file:
        for name in ATTRIBUTES:
            text = file.attrs.get(name)
            if text is not None:
                text = text.decode("utf-8") if isinstance(text, bytes) else str(text)
                found.append(json.loads(text))
    return found


def first_code(value: "Any") -> "str | None":
    """A description of what would execute code of the file; None if nothing would."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            found = _code_of(each)
            if found is not None:
                return found
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)
    return None


def _code_of(node: "dict[str, Any]") -> "str | None":
    kind = str(node.get("class_name") or "").replace(">", ".").rpartition(".")[2]
    settings = node.get("config")
    settings = settings if isinstance(settings, dict) else {}
    if kind == "__lambda__":
        return LAMBDA % "a lambda of Python"
    function = settings.get("function")
    is_code = settings.get("function_type", "lambda") == "lambda"
    if kind == "Lambda" and isinstance(function, (list, str)) and is_code:
        return LAMBDA % settings.get("name", "without a name")
    # Keras 2 marks code by function_type, output_shape_type and mask_type.
    if any(name.endswith("_type") and part == "lambda" for name, part in node.items()):
        return LAMBDA % node.get("name", "without a name")
    module = node.get("module") if "class_name" in node and kind != "function" else None
    if isinstance(module, str) and _is_of_python_itself(module):
        return "a layer of Python's own module %s" % module
    return None


def _is_of_python_itself(module: str) -> bool:
    """The standard library has no layers, but much that can do harm."""
    top = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError, AttributeError):
        return False
    origin = getattr(spec, "origin", None)
    if origin in ("built-in", "frozen"):
        return True
    if not origin:
        return False
    library = os.path.dirname(os.path.realpath(os.__file__))
    folder = os.path.dirname(os.path.realpath(origin))
    parts = os.path.relpath(folder, library).split(os.sep)
    return ".." not in parts and "site-packages" not in parts and "dist-packages" not in parts
