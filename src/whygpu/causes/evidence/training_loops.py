"""The training loops of a PyTorch program: the innermost loops that call backward()."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.program import Program
from whygpu.model.text_lines import has_line

_LOOPS = (ast.For, ast.While)
_APART = (*_LOOPS, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


may_train = has_line(("backward",), late(r"[\w)]\.backward\("))
"""Whether a text may have a training loop. Many texts only define a method of this name."""


class TrainingLoop(NamedTuple):
    node: ast.For | ast.While
    losses: frozenset[str]
    """The variables on which backward() is called; none for criterion(out, y).backward()."""
    every_step: tuple[ast.stmt, ...]
    """The statements that run in each step: not those below an `if`, or in an inner loop."""

    results: frozenset[str]
    """The losses, and what each step computes for them: the `out` of `criterion(out, y)`."""


@lru_cache(maxsize=1)
def training_loops(program: Program) -> tuple[TrainingLoop, ...]:
    """Four detectors ask for those of a program, one after the other."""
    if "torch" not in program.imports or "backward" not in program.text:
        return ()
    return tuple(_training_loops(program.tree))


def _training_loops(tree: ast.Module) -> Iterator[TrainingLoop]:
    for node in statements(tree):
        if not isinstance(node, _LOOPS):
            continue
        every_step = tuple(_every_step(node.body))
        of = [
            call.func.value
            for statement in every_step
            for call in ast.walk(statement)
            if isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "backward"
            and isinstance(call.func.value, ast.Name | ast.Call)
        ]
        if of:
            losses = frozenset(each.id for each in of if isinstance(each, ast.Name))
            yield TrainingLoop(node, losses, every_step, _results(losses, every_step))


def _results(losses: frozenset[str], every_step: tuple[ast.stmt, ...]) -> frozenset[str]:
    assigned: set[str] = set()
    used: set[str] = set()
    for statement in every_step:
        if isinstance(statement, ast.Assign):
            names = {each.id for each in statement.targets if isinstance(each, ast.Name)}
            assigned |= names if isinstance(statement.value, ast.Call) else set()
            if names & losses:
                used |= {
                    each.id for each in ast.walk(statement.value) if isinstance(each, ast.Name)
                }
    return losses | (assigned & used)


_LONG_WORK = late(
    r"fit\w{0,20}|backward|minimize|apply_gradients|generate|predict\w{0,20}|evaluate|cross_validate"
    r"|\w{0,40}(?:train|Train|solve|optimize)\w{0,40}"
)


@lru_cache(maxsize=1)
def computes_for_long(program: Program) -> bool:
    """Whether a call trains a model or lets it predict, by its name."""
    return any(_LONG_WORK.fullmatch(call.method) for call in program.calls() if call.method) or any(
        _LONG_WORK.fullmatch(call.node.func.id)
        for call in program.calls()
        if isinstance(call.node.func, ast.Name)
    )


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements, with the clauses that contain some; they are a tenth of the nodes."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        parent = waiting.pop()
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(parent, field, ())
            if isinstance(inner, list):
                yield from inner
                waiting += inner


def _every_step(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        if isinstance(statement, ast.With):
            yield from _every_step(statement.body)
        elif not isinstance(statement, (*_APART, ast.If, ast.Try)):
            yield statement


def mentions(node: ast.AST, names: frozenset[str]) -> bool:
    """Whether an expression uses one of the variables as it is, and no attribute of it."""
    if isinstance(node, ast.Attribute):
        return False
    if isinstance(node, ast.Name):
        return node.id in names
    return any(mentions(child, names) for child in ast.iter_child_nodes(node))


_MOVES = (".cuda(", ".to(", "device=", "device(", "set_default_", "cuda.FloatTensor")


def uses_gpu(program: Program) -> bool:
    """It names CUDA, and puts something on a device; or a library does that for it."""
    text = program.text
    return "accelerator" in text or ("cuda" in text and any(word in text for word in _MOVES))
