"""Code that runs in the target: Python 3.6 can execute it, and it imports nothing of whygpu."""

from __future__ import annotations

import ast
import builtins
import functools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import whygpu
from tests.cases import each
from tests.targets import find_interpreter
from whygpu.collectors import interpreter

PACKAGE = Path(whygpu.__path__[0])
FOLDERS = [PACKAGE / name for name in ("probes/scripts", "work/inside", "launch/bootstrap")]
"""`guard` also runs in the user's program, but as a part of whygpu, which needs Python 3.10."""
SOURCES = {
    str(path.relative_to(PACKAGE)): path.read_bytes()
    for folder in FOLDERS
    for path in sorted(folder.rglob("*.py"))
}
SOURCES["collectors/interpreter.py: _SCRIPT"] = interpreter._SCRIPT.encode()

COMPILE_ALL = """
import ast, sys
for name, source in sorted(ast.literal_eval(sys.stdin.read()).items()):
    try:
        compile(source, name, "exec")
    except SyntaxError as error:
        print("%s, line %s: %s" % (name, error.lineno, error.msg))
"""


@pytest.mark.slow
def test_a_real_python_3_6_compiles_all_of_it() -> None:
    python = find_interpreter(("3.6",))
    if python is None:
        pytest.skip("there is no Python 3.6 on this machine, neither on PATH nor in pyenv")
    done = subprocess.run(
        [python, "-c", COMPILE_ALL], input=repr(SOURCES), capture_output=True, text=True, check=True
    )
    assert done.stdout == ""


@pytest.mark.slow
@each("name", SOURCES)
def test_the_syntax_is_that_of_python_3_6(name: str) -> None:
    source = SOURCES[name]
    assert source.isascii(), "a target in the C locale"
    tree = tree_of(name)
    assert [name for name in imported(tree) if name == "whygpu" or name.startswith("whygpu.")] == []
    assert b"from __future__ import annotations" not in source, "new in Python 3.7"


@pytest.mark.slow
@each("name", SOURCES)
def test_annotations_cost_the_program_nothing(name: str) -> None:
    """They are evaluated where they stand, so they are quoted, and `typing` is not imported."""
    tree = tree_of(name)
    assert [ast.unparse(each) for each in annotations_of(tree) if not is_free(each)] == []
    executed = [node for node in tree.body if not is_for_checking_only(node)]
    assert "typing" not in imported(ast.Module(executed, []))


@functools.cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(SOURCES[name], feature_version=(3, 6))


def imported(tree: ast.AST) -> set[str]:
    """The modules that are imported anywhere in it, those of the same package left out."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    return names


def is_for_checking_only(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def annotations_of(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        found = None
        if isinstance(node, ast.FunctionDef):
            found = node.returns
        elif isinstance(node, ast.arg | ast.AnnAssign):
            found = node.annotation
        if found is not None:
            yield found


def is_free(annotation: ast.expr) -> bool:
    """Whether evaluating it takes no import, and works on every release of Python."""
    if isinstance(annotation, ast.Name):
        return hasattr(builtins, annotation.id)
    return isinstance(annotation, ast.Constant) and isinstance(annotation.value, str | None)
