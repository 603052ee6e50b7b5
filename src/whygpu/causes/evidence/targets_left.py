"""Training loops that move the inputs of a batch to the GPU, but not its targets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.runtime_starts import may_be_cuda
from whygpu.causes.evidence.training_loops import TrainingLoop, training_loops, uses_gpu
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program

_MOVED_ELSEWHERE = late(
    r"accelerat(?:e|or)|lightning|[Ff]abric|collate_fn|[Pp]refetch|set_default_(?:device|tensor)"
)
"""Whoever makes the batches may put them on the GPU."""
_LOSS_CLASS = late(r"\w{0,60}Loss")
_LOSS_FUNCTION = late(r"cross_entropy|binary_cross_entropy\w*|\w{1,30}_loss")
_FUNCTIONAL = frozenset({"F", "functional"})
_GPU_WORD = late(r"cuda|device|gpu", re.IGNORECASE)


class TargetLeft(NamedTuple):
    call: ast.Call
    """The loss."""
    target: str
    moved: str
    """The input of the same batch that was moved."""


def targets_left(program: Program) -> Iterator[TargetLeft]:
    loops = training_loops(program)
    if not loops or not uses_gpu(program) or _MOVED_ELSEWHERE.search(program.text):
        return
    for loop in loops:
        yield from _in_loop(program, loop)


def _in_loop(program: Program, loop: TrainingLoop) -> Iterator[TargetLeft]:
    batch = _batch_names(loop.node)
    assigned = _assignments(loop)
    moved = {name for name in batch if name in assigned and _moves(program, assigned[name], name)}
    left = batch - moved - _touched(loop.node)
    for statement in loop.every_step:
        for call in ast.walk(statement):
            if not isinstance(call, ast.Call) or len(call.args) < 2:
                continue
            output, target = call.args[:2]
            if (
                isinstance(output, ast.Name)
                and isinstance(target, ast.Name)
                and target.id in left
                and _is_loss(program, call.func)
            ):
                source = _source(assigned.get(output.id))
                if source in moved:
                    yield TargetLeft(call, target.id, source)


def _batch_names(loop: ast.For | ast.While) -> set[str]:
    """The names in `for x, y in loader`, also inside enumerate; a single one may be anything."""
    if not isinstance(loop, ast.For):
        return set()
    tuples = [node for node in ast.walk(loop.target) if isinstance(node, ast.Tuple)]
    if not tuples:
        return set()
    names = tuples[-1].elts
    return {each.id for each in names if isinstance(each, ast.Name)}


def _assignments(loop: TrainingLoop) -> dict[str, ast.expr]:
    """The values of variables that one statement of each step assigns."""
    found: dict[str, ast.expr] = {}
    for statement in loop.every_step:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            if name in found:
                # Which one counts depends on the place.
                found[name] = ast.Constant(None)
            else:
                found[name] = statement.value
    return found


def _moves(program: Program, value: ast.expr, name: str) -> bool:
    """x.to(device) or x.cuda(), of this variable."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Attribute):
        return False
    of = value.func.value
    if not isinstance(of, ast.Name) or of.id != name:
        return False
    if value.func.attr == "cuda":
        return True
    if value.func.attr != "to" or len(value.args) != 1:
        return False
    return bool(_GPU_WORD.search(ast.unparse(value.args[0]))) or any(
        call.node is value and may_be_cuda(call.argument(0)) for call in program.calls()
    )


def _touched(loop: ast.For | ast.While) -> set[str]:
    """Variables that the body assigns, or of which it uses an attribute, such as y.to."""
    found = set()
    for statement in loop.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add(node.value.id)
    return found


def _is_loss(program: Program, function: ast.expr) -> bool:
    """One of PyTorch's, which leave their arguments where they are."""
    if isinstance(function, ast.Attribute):
        of = function.value.id if isinstance(function.value, ast.Name) else ""
        return of in _FUNCTIONAL and bool(_LOSS_FUNCTION.fullmatch(function.attr))
    if not isinstance(function, ast.Name):
        return False
    made = [
        node.value
        for node in ast.walk(program.tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and node.targets[0].id == function.id
    ]
    losses = {call.node for call in program.calls() if call.path.startswith("torch.nn.")}
    return bool(made) and all(
        any(node in losses and _LOSS_CLASS.fullmatch(_last_word(node)) for node in ast.walk(value))
        for value in made
    )


def _last_word(node: ast.AST) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _source(value: ast.expr | None) -> str:
    """The x of model(x)."""
    is_model = isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
    if not is_model or not isinstance(value, ast.Call) or not value.args:
        return ""
    return value.args[0].id if isinstance(value.args[0], ast.Name) else ""
