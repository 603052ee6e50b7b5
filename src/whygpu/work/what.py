"""What the user names, as a value: model.keras, file.py:function, script.py."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Collection

from whygpu.errors import UsageError
from whygpu.model.work import What, WhatKind

MODEL_ENDINGS = (".keras", ".h5", ".hdf5")
_EXPECTED = "expected model.keras, file.py:function or script.py"


def parse_what(text: str, allowed: Collection[WhatKind]) -> What:
    """UsageError where there is no such thing, or it is of a kind that does not serve here."""
    path, colon, name = text.rpartition(":")
    if colon and path.endswith(".py"):
        what = What("function", os.path.abspath(path), name)
    elif text.lower().endswith(MODEL_ENDINGS):
        what = What("model-file", os.path.abspath(text))
    elif text.endswith(".py"):
        what = What("script", os.path.abspath(text))
    else:
        raise UsageError(f"{text!r}: {_EXPECTED}")
    if what.kind not in allowed:
        raise UsageError(_not_allowed(text, what, allowed))
    if not os.path.isfile(what.path):
        state = "is a folder" if os.path.isdir(what.path) else "does not exist"
        raise UsageError(f"{text!r}: {os.path.relpath(what.path)} {state}; {_EXPECTED}")
    if what.kind == "function":
        _check_name(what)
    return what


def _not_allowed(text: str, what: What, allowed: Collection[WhatKind]) -> str:
    if what.kind == "script":
        return f"{text!r}: which function of it? expected {text}:function"
    words = {"model-file": "model.keras", "function": "file.py:function", "script": "script.py"}
    return f"{text!r}: expected {' or '.join(words[kind] for kind in words if kind in allowed)}"


def _check_name(what: What) -> None:
    """The name is looked for without running the file; what it imports may define it as well."""
    try:
        with open(what.path, "rb") as file:
            tree = ast.parse(file.read(), what.path)
    except OSError as error:
        raise UsageError(f"cannot read {what.path}: {error.strerror}") from error
    except (SyntaxError, ValueError):
        # Written for another Python, perhaps the target's: that one will tell.
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
    near = difflib.get_close_matches(first, names, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(sorted(names))}"
    raise UsageError(
        f"{os.path.relpath(what.path)} has no {what.name!r}; "
        + (hint if names else "it defines no function")
    )


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
