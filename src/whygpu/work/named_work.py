"""What the user names, as a value: model.keras, file.py:function, script.py."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Collection

from whygpu.errors import UsageError
from whygpu.host.files import TooLarge, read_whole
from whygpu.model.work import What, WhatKind
from whygpu.readers import limits
from whygpu.readers.code.tokens import check_tokens

MODEL_ENDINGS = (".keras", ".h5", ".hdf5")
_SAVED_MODELS = (b"PK\x03\x04", b"\x89HDF\r\n\x1a\n")
"""How they begin: Keras 3 writes zip archives, others HDF5 under either ending."""
_WORDS: dict[WhatKind, str] = {
    "model-file": "model.keras",
    "function": "file.py:function",
    "script": "script.py",
}
_MOST_NAMES = 12
_OTHERS = {
    (".pt", ".pth", ".ckpt", ".safetensors"): (
        "it may hold weights alone; name a function that builds the module and loads them, such as "
        "net.py:build"
    ),
    (".onnx", ".tflite", ".pb", ".engine"): (
        "it is an exported model; name the function that builds it before the export"
    ),
    (".ipynb",): "save its code as a .py file",
}
"""What else people have, by its ending, and what to do with it."""


def parse_what(text: str, allowed: Collection[WhatKind]) -> What:
    """Raises UsageError if it does not exist, or is of a kind that this verb does not take."""
    path, colon, name = text.rpartition(":")
    if colon and not name and path.endswith(".py"):
        raise UsageError(f"{text!r}: which function of it? expected {path}:function")
    if colon and path.endswith(".py"):
        what = What("function", os.path.abspath(path), name)
    elif text.lower().endswith(MODEL_ENDINGS):
        what = What("model-file", os.path.abspath(text))
    elif text.endswith(".py"):
        what = What("script", os.path.abspath(text))
    else:
        raise UsageError(f"{text!r}{_state(text)}: {_expected(allowed)}{_hint(text)}")
    if not os.path.isfile(what.path):
        state = "is a folder" if os.path.isdir(what.path) else "does not exist"
        raise UsageError(f"{text!r}: {os.path.relpath(what.path)} {state}; {_expected(allowed)}")
    if what.kind not in allowed:
        raise UsageError(_not_allowed(text, what, allowed))
    if what.kind == "function":
        _check_name(what)
    if what.kind == "model-file":
        _check_model(what)
    return what


def _not_allowed(text: str, what: What, allowed: Collection[WhatKind]) -> str:
    if what.kind == "script":
        return f"{text!r}: which function of it? expected {text}:function"
    return f"{text!r}: {_expected(allowed)}"


def _expected(allowed: Collection[WhatKind]) -> str:
    *others, last = [words for kind, words in _WORDS.items() if kind in allowed]
    return f"expected {', '.join(others)} or {last}" if others else f"expected {last}"


def _state(text: str) -> str:
    """What exists under that name, if it is no file that the verb takes."""
    path = text if os.path.exists(text) else text.rpartition(":")[0] or text
    if os.path.isdir(path):
        return f": {path} is a folder" if path != text else " is a folder"
    return "" if os.path.exists(path) else " does not exist"


def _hint(text: str) -> str:
    if os.path.isfile(os.path.join(text, "saved_model.pb")):
        return "; it is a SavedModel: save the model as model.keras"
    for endings, words in _OTHERS.items():
        if text.lower().endswith(endings):
            return f"; {words}"
    return ""


def _check_model(what: What) -> None:
    """Report the remains of a failed download or copy, before Keras is started."""
    try:
        with open(what.path, "rb") as file:
            start = file.read(64)
    except OSError as error:
        raise UsageError(f"cannot read {what.path}: {error.strerror}") from error
    name = os.path.relpath(what.path)
    if start.startswith(b"version https://git-lfs"):
        raise UsageError(
            f"{name} is a pointer of Git LFS, not the model; `git lfs pull` fetches the model"
        )
    if not start.startswith(_SAVED_MODELS):
        raise UsageError(
            f"{name} is no saved Keras model: it is neither a zip archive nor HDF5; was it saved, "
            "or copied, to its end?"
        )


def _check_name(what: What) -> None:
    """The name is looked for without running the file; what it imports may define it as well."""
    try:
        content = read_whole(what.path, limits.SOURCE_FILE)
        check_tokens(content.decode("latin-1"))
        tree = ast.parse(content, what.path)
    except TooLarge:
        # The target runs it anyway, and will tell.
        return
    except OSError as error:
        raise UsageError(f"cannot read {what.path}: {error.strerror}") from error
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Written for another Python, perhaps the target's, or too large: that one will tell.
        return
    names = {node.name for node in ast.walk(tree) if isinstance(node, _DEFINITIONS)}
    words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    # What is inside of a class or a module, the file that runs can tell.
    first = what.name.partition(".")[0]
    if first in names | words | imported or "*" in imported:
        return
    raise UsageError(f"{os.path.relpath(what.path)} has no {what.name!r}; {_instead(first, tree)}")


def _instead(name: str, tree: ast.Module) -> str:
    """The names of the file itself: a function in a function cannot be had by its name."""
    names = sorted(node.name for node in tree.body if isinstance(node, _DEFINITIONS))
    if not names:
        return "it defines no function"
    near = difflib.get_close_matches(name, names, 3)
    if near:
        return f"did you mean {' or '.join(near)}?"
    more = ", ..." if len(names) > _MOST_NAMES else ""
    return f"it has {', '.join(names[:_MOST_NAMES])}{more}"


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
