"""What makes a finding of any rule doubtful: code that never runs, tests, examples of mistakes.

The rules look for a defect. Whether it matters at its place is the same question for all of them,
and is answered here once.
"""

from __future__ import annotations

import ast
import itertools
import os
from collections.abc import Iterator
from functools import cached_property

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

_WRONG_WORD = r"(?:wrong|incorrect|bad|anti-?patterns?)"
_LABELLED_WRONG = late(
    rf"^\W*{_WRONG_WORD}(?: (?:way|example|usage|practice))?(?:[!.]*\s*$|\s*:)"
    r"|^\W*(?:(?:do not|don'?t|never) do this\b|❌|✗)",
    2,
)
"""A comment that is a label for the statement: "Wrong:", "BAD", "Don't do this"."""
_SAYS_ITS_MEANT = late(
    rf"^\W*(?:this (?:line |call )?(?:is|would be|will be) )?(?:{_WRONG_WORD}|broken|buggy)\b"
    r"|^\W*this (?:will )?(?:fail|crash|raise)s?\b"
    r"|\b(?:on purpose|intentional(?:ly)?|deliberate(?:ly)?)\b",
    2,
)
"""A comment that may say so. It may as well be about the data, or admit the defect."""
_ASSUMES = late(
    r"\b(?:suppos\w{1,4}|assum\w{1,4}|if (?:you|we|there|your \w{1,20})|requires?|needs?)\b"
    r"[^\n]{0,60}\b(?:gpus?|cards?|devices?|cuda)\b",
    2,
)
"""A comment that names the machine that the line is for."""
_DEPENDS_ON_MACHINE = frozenset(
    {
        "gpu-index-unchecked",
        "device-number-hard-coded",
        "processes-share-gpu",
        "whole-data-set-on-gpu",
        "checkpoint-needs-its-device",
        "every-rank-on-one-gpu",
        "gpu-required-in-session",
        "gpu-taken-for-granted",
    }
)
"""Causes that are no defect on the right machine. A result that is thrown away is one on each."""
_WORD = late(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_WRONG_NAMES = frozenset(
    {
        "bad",
        "wrong",
        "incorrect",
        "broken",
        "buggy",
        "naive",
        "antipattern",
        "antipatterns",
        "mistake",
        "mistakes",
    }
)
_RIGHT_NAMES = frozenset({"good", "right", "correct", "fixed", "better", "proper"})
_EXAMPLE_NAMES = frozenset(
    {"anti", "pattern", "patterns", "example", "examples", "code", "case", "way", "common"}
)
_TEST_FILE = late(r"(?:^|[/\\])(?:test_[^/\\]*|[^/\\]*_tests?|conftest)\.py$")
_TEST_FOLDER = late(r"(?:^|[/\\])(?:tests|testing)[/\\]")
_DOCS_FOLDER = late(r"(?:^|[/\\])(?:docs?|documentation|_static)[/\\]")
_TEST_TOOLS = frozenset({"pytest", "unittest", "absl", "nose", "hypothesis"})
_TEST_FUNCTION = late(r"test(?:_|[A-Z]|$)|(?:setUp|tearDown)(?:Class|Module)?$")

_ASSUMED = "a comment here names the machine that it assumes"
_IN_TEST = "this is a test, which may do it on purpose"
_IN_DOCS = "this is an example of the documentation"
_MEANT = "a comment here says that it is meant, or that it is wrong"


class Doubts:
    """The doubts about the findings in one program."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._unreached: dict[int, frozenset[ast.AST]] = {}

    def settled(self, item: CodeFinding) -> CodeFinding | None:
        """The finding, a note in its place, or None if it is no finding where it is."""
        node = item.node
        if node is None:
            return item
        chain = [node, *_ancestors(self._program, node)]
        comments = _comments_at(self._program, chain)
        if (
            self._never_runs(chain)
            or any(map(_expects_error, chain))
            or any(map(_LABELLED_WRONG.search, comments))
        ):
            return None
        is_info = item.finding.severity == "info"
        if _is_in_test(self._program, chain, self._called):
            # How fast a test is, or where it runs, is its author's choice.
            return None if is_info else _as_note(item, _IN_TEST)
        if is_info:
            return item
        why = (
            (_MEANT if any(map(_SAYS_ITS_MEANT.search, comments)) else "")
            or self._named_wrong(chain)
            or (_IN_DOCS if _DOCS_FOLDER.search(self._program.path) else "")
            or (_ASSUMED if self._names_its_machine(item, comments) else "")
            or self._switched_off(chain)
        )
        return _as_note(item, why) if why else item

    @staticmethod
    def _names_its_machine(item: CodeFinding, comments: list[str]) -> bool:
        return item.finding.cause in _DEPENDS_ON_MACHINE and any(map(_ASSUMES.search, comments))

    def _never_runs(self, chain: list[ast.AST]) -> bool:
        """Below `if False`, or after a statement that leaves the block."""
        by_hand = self._program.path.endswith(".ipynb")
        for child, parent in itertools.pairwise(chain):
            if isinstance(parent, (ast.If, ast.While)) and isinstance(parent.test, ast.Constant):
                unreached = parent.orelse if parent.test.value else parent.body
                if child in unreached:
                    return True
            if isinstance(parent, ast.Module) and by_hand:
                # Who runs the cells one by one goes on after an error.
                continue
            if isinstance(child, ast.stmt) and child in self._after_the_end(parent):
                return True
        return False

    def _after_the_end(self, parent: ast.AST) -> frozenset[ast.AST]:
        """The statements directly below this one that follow a statement that leaves the block.

        Kept for the next finding: a generated file has thousands in one block.
        """
        if id(parent) not in self._unreached:
            blocks = (getattr(parent, field, None) for field in _BLOCKS)
            self._unreached[id(parent)] = frozenset(
                after
                for block in blocks
                if isinstance(block, list)
                for after in itertools.islice(
                    itertools.dropwhile(lambda each: not _leaves(each), block), 1, None
                )
            )
        return self._unreached[id(parent)]

    def _named_wrong(self, chain: list[ast.AST]) -> str:
        """A name around it that says that this is the wrong way; empty if there is none.

        Names are about much else as well (naive_bayes, bad_words), so one word is not enough: the
        whole name says it, or the right way has a name in the same file.
        """
        stem = os.path.basename(self._program.path).partition(".")[0]
        for name in (stem, *(getattr(node, "name", None) or "" for node in chain)):
            words = _words_of(name)
            if not words.isdisjoint(_WRONG_NAMES) and (
                words <= _WRONG_NAMES | _EXAMPLE_NAMES or self._has_right_way
            ):
                return f"the name {name} may mean that this shows a mistake"
        return ""

    @cached_property
    def _has_right_way(self) -> bool:
        return any(
            isinstance(node, (*_FUNCTIONS, ast.ClassDef))
            and not _words_of(node.name).isdisjoint(_RIGHT_NAMES)
            for node in ast.walk(self._program.tree)
        )

    @cached_property
    def _called(self) -> frozenset[str]:
        """The functions that this file calls by their name."""
        return frozenset(
            node.func.id
            for node in ast.walk(self._program.tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        )

    def _switched_off(self, chain: list[ast.AST]) -> str:
        """Why it does not run as the file is: a constant above it is False. Empty if it runs."""
        for child, parent in itertools.pairwise(chain):
            if not isinstance(parent, ast.If):
                continue
            test, wanted = parent.test, child in parent.body
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, wanted = test.operand, not wanted
            made = self._constants.get(test.id) if isinstance(test, ast.Name) else None
            if made is not None and bool(getattr(made.value, "value", None)) is not wanted:
                return (
                    f"but it does not run as the file is, because {ast.unparse(test)} is "
                    f"{self._program.source(made.value)} in {self._program.line_name(made)}"
                )
        return ""

    @cached_property
    def _constants(self) -> dict[str, ast.Assign]:
        """The statements of the module that give a name its only value, which is a constant."""
        stored: dict[str, list[ast.AST]] = {}
        for node in ast.walk(self._program.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.arg):
                stored.setdefault(node.arg, []).append(node)
            elif isinstance(node, ast.alias):
                stored.setdefault(node.asname or node.name, []).append(node)
        found = {}
        for name, nodes in stored.items():
            made = self._program.parent(nodes[0]) if len(nodes) == 1 else None
            if (
                isinstance(made, ast.Assign)
                and isinstance(made.value, ast.Constant)
                and self._program.parent(made) is self._program.tree
            ):
                found[name] = made
        return found


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


def _comments_at(program: Program, chain: list[ast.AST]) -> list[str]:
    """The comments at the statement, if it is one of this file and no block."""
    if program.origin(chain[0]) is not None:
        return []
    statement = next((node for node in chain if isinstance(node, ast.stmt)), None)
    if statement is None or _is_block(statement):
        return []
    return program.comments_at(statement).split("\n")


def _words_of(name: str) -> frozenset[str]:
    """Those of bad_move2 and BadMove, without the numbers."""
    words = (match[0].lower() for match in _WORD.finditer(name))
    return frozenset(word for word in words if not word.isdecimal())


def _is_block(statement: ast.stmt) -> bool:
    return any(getattr(statement, field, None) for field in _BLOCKS)


def _is_in_test(program: Program, chain: list[ast.AST], called: frozenset[str]) -> bool:
    if any(_is_test_code(node) and not _is_used(node, called) for node in chain):
        return True
    if not os.path.isabs(program.path) and _TEST_FOLDER.search(program.path):
        # What the tests share. A folder test is mostly for the program that evaluates a model.
        return True
    if not _TEST_FILE.search(program.path):
        # test.py is mostly the program that evaluates a model.
        return False
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


def _is_used(node: ast.AST, called: frozenset[str]) -> bool:
    """Whether the file calls this function itself: then it is a part of the program."""
    return isinstance(node, _FUNCTIONS) and not node.decorator_list and node.name in called


def _is_given_model(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """test_epoch(model, loader, device) evaluates a model, and no test runner calls it."""
    given = {argument.arg for argument in (*node.args.posonlyargs, *node.args.args)}
    return bool(
        given & {"args", "model", "net", "loader", "dataloader", "data_loader", "test_loader"}
    )


def _last_word(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
