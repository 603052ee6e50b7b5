"""Which TensorFlow a file is written for: 1, 2, either of them, or unknown."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

from whygpu.model.events import Import
from whygpu.model.program import Program, TensorFlowLine
from whygpu.tables.tensorflow_names import SINCE_2, is_removed

_SAYS_1 = re.compile(
    r"tensorflow_version\s+1|tensorflow(?:[-_](?:gpu|cpu))?\s*(?:==|~=|<=?)\s*[\"']?\s*1\.|"
    r"tensorflow(?:[-_]gpu)?\s*<\s*2",
    re.IGNORECASE,
)
_COMMENT_SAYS_1 = re.compile(
    r"\b(?:tensorflow|tf)[- _]?(?:version|ver|gpu)?[ :=~<>v]*1(?:\.(?:\d+|x)|\b(?![.\d]))",
    re.IGNORECASE,
)
_PATH_SAYS_1 = re.compile(
    r"(?:^|[/_.-])(?:tf|tensorflow)[-_]?v?[-_]?1(?:[._-]?[0-9x]+)?(?:[/_.-]|$)"
    # tensorflow/_v1.py
    r"|\b(?:tf|tensorflow)[^\n]{0,200}[/_.-]v1\.py$",
    re.IGNORECASE,
)

_OLD_KERAS = ("keras.backend.tensorflow_backend", "keras.utils.training_utils")
"""Modules of Keras 2.3 and older, which ran on TensorFlow 1; 2.4 and later have neither."""

_VERSION = re.compile(r"tensorflow\.(?:__version__|VERSION|version\.VERSION)(\.\w{1,40})?$")


_A_FEW = 4
_FROM_END_TO_END = 10
"""This many names of TensorFlow 1 and none of 2 mean a program for TensorFlow 1, not a mistake."""


def line_of(
    program: Program,
    magics: str = "",
    hint: Callable[[], TensorFlowLine | None] = lambda: None,
) -> TensorFlowLine:
    """`hint` returns what the project suggests; it is called if the program is unclear.

    A program with names of TensorFlow 1 is for TensorFlow 2 only if something says so.
    """
    if "tensorflow" not in program.imports:
        return "unknown"
    asserted = _asserted(program)
    if asserted is not None:
        return asserted
    if _looks_at_version(program):
        return "either"
    if _SAYS_1.search(magics) or _PATH_SAYS_1.search(program.path) or _says_1(program):
        return "1"
    used = [event for event in program.named() if event.path.startswith("tensorflow.")]
    if any(event.path.removeprefix("tensorflow.") in SINCE_2 for event in used):
        return "2"
    removed = {event.node for event in used if is_removed(event.path)}
    # tf.compat.v1 alone says little: 1.13 and later have it as well.
    if not removed:
        return "1" if hint() == "1" else "2"
    if len(removed) >= _FROM_END_TO_END or _serves_python_2(program) or _has_old_keras(program):
        return "1"
    words = hint()
    if words == "either" and len(removed) >= _A_FEW:
        return "1"
    return words or "unknown"


def _asserted(program: Program) -> TensorFlowLine | None:
    """assert tf.__version__.startswith("2.")"""
    for event in program.named():
        if _VERSION.match(event.path):
            statement = program.statement(event.node)
            words = re.findall(r"""['"]([12])\b""", program.source(statement))
            if isinstance(statement, ast.Assert) and words:
                return "1" if words[0] == "1" else "2"
    return None


def _looks_at_version(program: Program) -> bool:
    """It reads tf.__version__ to decide something, not only to print it."""
    for event in program.named():
        found = _VERSION.match(event.path)
        if found is None:
            continue
        if found.group(1):
            # tf.__version__.startswith("2")
            return True
        node: ast.AST | None = event.node
        while node is not None and not isinstance(node, ast.stmt):
            if isinstance(node, ast.Compare):
                return True
            node = program.parent(node)
        if isinstance(node, (ast.If, ast.Assert, ast.Assign, ast.While, ast.Return)):
            return True
    return any(
        call.path == "builtins.hasattr"
        and call.arguments
        and getattr(call.arguments[0], "path", "").startswith("tensorflow")
        for call in program.calls("builtins.hasattr")
    )


def _serves_python_2(program: Program) -> bool:
    """Whether it also runs on Python 2, which mostly TensorFlow 1 supported."""
    return any(
        isinstance(statement, ast.ImportFrom)
        and statement.module == "__future__"
        and any(
            alias.name in ("print_function", "absolute_import", "division", "unicode_literals")
            for alias in statement.names
        )
        for statement in program.tree.body
    )


def _has_old_keras(program: Program) -> bool:
    return any(
        type(event) is Import and event.path.startswith(_OLD_KERAS) for event in program.events
    )


def _says_1(program: Program) -> bool:
    """A comment or the module's docstring names TensorFlow 1, and none names TensorFlow 2."""
    docstring = ast.get_docstring(program.tree, clean=False) or ""
    comments = [line for line in program.lines if line.lstrip().startswith("#")]
    text = "\n".join([docstring, *comments])
    return bool(_COMMENT_SAYS_1.search(text)) and not re.search(
        r"\b(?:tensorflow|tf)[- _]?(?:version)?[ v=>]*2", text, re.IGNORECASE
    )
