"""What makes a finding of any rule doubtful: code that never runs, tests, examples of mistakes.

The rules look for a defect. Whether it matters at its place is the same question for all of them,
and is answered here once.
"""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Iterator
from functools import lru_cache

from whygpu.model.code_finding import CodeFinding
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program

_ENDINGS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_EXITS = frozenset({"exit", "quit", "_exit"})
_EXPECTS_ERROR = frozenset(
    {
        "raises",
        "assertRaises",
        "assertRaisesRegex",
        "assertRaisesRegexp",
        "assertRaisesWithPredicate",
    }
)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

_CALLED_WRONG = late(
    r"^\W*(?:this (?:line |call )?(?:is|would be|will be) )?"
    r"(?:wrong|incorrect|bad|broken|buggy|anti-?pattern)\b"
    r"|^\W*(?:(?:do not|don'?t|never) do this|this (?:will )?(?:fail|crash|raise)s?\b|❌|✗)"
    r"|\b(?:on purpose|intentional(?:ly)?|deliberate(?:ly)?)\b",
    2,
)
"""A comment that says that the line is a mistake, or is meant."""
_ASSUMES = late(
    r"\b(?:suppos\w{1,4}|assum\w{1,4}|if (?:you|we|there|your \w{1,20})|requires?|needs?)\b"
    r"[^\n]{0,60}\b(?:gpus?|cards?|devices?|cuda)\b",
    2,
)
"""A comment that names the machine that the line is for."""
_NAMED_WRONG = late(
    r"(?:^|[_-])(?:bad|wrong|incorrect|broken|buggy|anti_?patterns?|mistakes?)(?:[_-]|$)", 2
)
_TEST_FILE = late(r"(?:^|[/\\])(?:test_[^/\\]*|[^/\\]*_tests?|conftest)\.py$")
_TEST_TOOLS = frozenset({"pytest", "unittest", "absl", "nose", "hypothesis"})
_TEST_FUNCTION = late(r"test(?:_|[A-Z]|$)|(?:setUp|tearDown)(?:Class|Module)?$")

_ASSUMED = "a comment here names the machine that it assumes"
_NAMED = "a name here says that this is an example of a mistake"
_IN_TEST = "this is a test, which may do it on purpose"


def settled(program: Program, item: CodeFinding) -> CodeFinding | None:
    """The finding, a note in its place, or None if it is no finding where it is."""
    node = item.node
    if node is None:
        return item
    chain = [node, *_ancestors(program, node)]
    if (
        _never_runs(program, chain)
        or any(map(_expects_error, chain))
        or any(map(_CALLED_WRONG.search, _comments(program, chain)))
    ):
        return None
    is_info = item.finding.severity == "info"
    if _is_in_test(program, chain):
        # How fast a test is, or where it runs, is its author's choice.
        return None if is_info else _as_note(item, _IN_TEST)
    if is_info:
        return item
    if _is_named_wrong(program, chain):
        return _as_note(item, _NAMED)
    if any(map(_ASSUMES.search, _comments(program, chain))):
        return _as_note(item, _ASSUMED)
    switch = _switched_off(program, chain)
    return _as_note(item, switch) if switch else item


def _as_note(item: CodeFinding, why: str) -> CodeFinding:
    finding = item.finding
    return item._replace(
        finding=finding._replace(severity="info", message=f"{finding.message}; {why}")
    )


def _ancestors(program: Program, node: ast.AST) -> Iterator[ast.AST]:
    parent = program.parent(node)
    while parent is not None:
        yield parent
        parent = program.parent(parent)


def _never_runs(program: Program, chain: list[ast.AST]) -> bool:
    """Below `if False`, or after a statement that leaves the block."""
    by_hand = program.path.endswith(".ipynb")
    for child, parent in itertools.pairwise(chain):
        line = getattr(child, "lineno", 0)
        if isinstance(parent, (ast.If, ast.While)) and isinstance(parent.test, ast.Constant):
            unreached = parent.orelse if parent.test.value else parent.body
            if unreached and unreached[0].lineno <= line <= (unreached[-1].end_lineno or line):
                return True
        if isinstance(parent, ast.Module) and by_hand:
            # Who runs the cells one by one goes on after an error.
            continue
        if any(end < line <= last for end, last in _unreached_lines(program, parent)):
            return True
    return False


def _unreached_lines(program: Program, parent: ast.AST) -> list[tuple[int, int]]:
    """For each block of a statement that is left before its end: the lines after that."""
    known = _unreached_by_parent(program)
    if parent not in known:
        known[parent] = []
        for field in _BLOCKS:
            block = getattr(parent, field, None)
            statements = block if isinstance(block, list) else []
            leaving = next(filter(_leaves, statements), None)
            if leaving is not None:
                end = leaving.end_lineno or leaving.lineno
                known[parent].append((end, statements[-1].end_lineno or end))
    return known[parent]


@lru_cache(maxsize=1)
def _unreached_by_parent(program: Program) -> dict[ast.AST, list[tuple[int, int]]]:
    """A file may have thousands of findings in one block."""
    return {}


def _leaves(statement: ast.AST) -> bool:
    if isinstance(statement, _ENDINGS):
        return True
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    if isinstance(call.func, ast.Name):
        return call.func.id in _EXITS
    of = call.func.value if isinstance(call.func, ast.Attribute) else None
    return isinstance(of, ast.Name) and of.id in ("sys", "os") and _last_word(call.func) in _EXITS


def _expects_error(node: ast.AST) -> bool:
    """with pytest.raises(RuntimeError):"""
    return isinstance(node, (ast.With, ast.AsyncWith)) and any(
        isinstance(item.context_expr, ast.Call)
        and _last_word(item.context_expr.func) in _EXPECTS_ERROR
        for item in node.items
    )


def _is_named_wrong(program: Program, chain: list[ast.AST]) -> bool:
    """The file, or a function around it, has a name such as bad_example."""
    file = os.path.basename(program.path).partition(".")[0]
    names = (file, *(getattr(node, "name", None) or "" for node in chain))
    return any(map(_NAMED_WRONG.search, names))


def _comments(program: Program, chain: list[ast.AST]) -> list[str]:
    """Those on the lines of the statement and above it; a whole block has too many."""
    if program.origin(chain[0]) is not None:
        return []
    statement = next((node for node in chain if isinstance(node, ast.stmt)), None)
    if statement is None or _is_block(statement):
        return []
    return program.comments_at(statement).split("\n")


def _is_block(statement: ast.stmt) -> bool:
    return any(getattr(statement, field, None) for field in _BLOCKS)


def _is_in_test(program: Program, chain: list[ast.AST]) -> bool:
    if any(_is_test_code(node) for node in chain):
        return True
    # test.py is mostly the program that evaluates a model.
    return bool(_TEST_FILE.search(program.path)) and _has_tests(program)


@lru_cache(maxsize=1)
def _has_tests(program: Program) -> bool:
    return bool(program.imports & _TEST_TOOLS) or any(map(_is_test_code, program.tree.body))


def _is_test_code(node: ast.AST) -> bool:
    """A function or a class that a test runner calls."""
    if isinstance(node, ast.ClassDef):
        return any(_last_word(base).endswith("TestCase") for base in node.bases)
    if not isinstance(node, _FUNCTIONS):
        return False
    if any("pytest" in ast.dump(decorator) for decorator in node.decorator_list):
        return True
    # Not the test(model, loader) of a training program.
    return (
        bool(_TEST_FUNCTION.match(node.name)) and node.name != "test" and not _is_given_model(node)
    )


def _is_given_model(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """test_epoch(model, loader, device) evaluates a model, and no test runner calls it."""
    given = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args)}
    return bool(
        given & {"args", "model", "net", "loader", "dataloader", "data_loader", "test_loader"}
    )


def _switched_off(program: Program, chain: list[ast.AST]) -> str:
    """Why it does not run as the file is: a constant above it is False. Empty if it runs."""
    for child, parent in itertools.pairwise(chain):
        if not isinstance(parent, ast.If):
            continue
        test, wanted = parent.test, child in parent.body
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, wanted = test.operand, not wanted
        if isinstance(test, ast.Name):
            made = _only_constant(program, test.id)
            if made is not None and bool(getattr(made.value, "value", None)) is not wanted:
                return (
                    f"but it does not run as the file is, because {test.id} is "
                    f"{program.source(made.value)} in {program.line_name(made)}"
                )
    return ""


def _only_constant(program: Program, name: str) -> ast.Assign | None:
    """The statement of the module that gives a name its only value, which is a constant."""
    given = _given_names(program).get(name, [])
    made = program.parent(given[0]) if len(given) == 1 else None
    is_plain = (
        isinstance(made, ast.Assign)
        and isinstance(made.value, ast.Constant)
        and program.parent(made) is program.tree
    )
    return made if is_plain and isinstance(made, ast.Assign) else None


@lru_cache(maxsize=1)
def _given_names(program: Program) -> dict[str, list[ast.AST]]:
    """Where each name of the file gets a value."""
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(node.id, []).append(node)
        elif isinstance(node, ast.arg):
            found.setdefault(node.arg, []).append(node)
        elif isinstance(node, ast.alias):
            found.setdefault(node.asname or node.name, []).append(node)
    return found


def _last_word(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
