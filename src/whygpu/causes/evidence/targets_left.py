"""Training loops that move the inputs of a batch to the GPU, but not its targets."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from whygpu.causes.evidence.runtime_starts import may_be_cuda
from whygpu.causes.evidence.training_loops import TrainingLoop, training_loops, uses_gpu
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program

_MOVED_ELSEWHERE = late(
    r"accelerat(?:e|or)|lightning|[Ff]abric|collate_fn|[Pp]refetch|set_default_(?:device|tensor)"
)
"""Whoever makes the batches may put them on the GPU."""
_MOVES_IN_PLACE = frozenset({"torch_geometric", "transformers", "tokenizers", "detectron2", "mmcv"})
"""Their batches are objects, whose own .to() changes them."""
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
    batch, unpacked = _batch_names(loop)
    assigned = _assignments(loop)
    moved = {name for name in batch if name in assigned and _moves(program, assigned[name], name)}
    left = batch - moved - _touched(loop.node, unpacked)
    for statement in loop.every_step:
        for call in ast.walk(statement):
            if not isinstance(call, ast.Call) or len(call.args) < 2:
                continue
            output, target = call.args[:2]
            if isinstance(output, ast.Name):
                output = assigned.get(output.id, output)
            if isinstance(target, ast.Name) and target.id in left and _is_loss(program, call.func):
                source = _source(program, output, batch, moved)
                if source:
                    yield TargetLeft(call, target.id, source)


class DiscardedMove(NamedTuple):
    call: ast.Call
    is_sure: bool
    """Another part of the batch is moved by x = x.cuda(), so this is a tensor as well."""


def discarded_moves(program: Program) -> Iterator[DiscardedMove]:
    """y.cuda() alone, for the parts x and y of one batch, which the step then uses."""
    if not uses_gpu(program) or not _MOVES_IN_PLACE.isdisjoint(program.imports):
        return
    for loop in training_loops(program):
        batch, _ = _batch_names(loop)
        assigned = _assignments(loop)
        kept = any(name in assigned and _moves(program, assigned[name], name) for name in batch)
        for statement in loop.every_step:
            call = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(call, ast.Call) and any(
                _moves(program, call, name) for name in batch - assigned.keys()
            ):
                yield DiscardedMove(call, kept)


def _batch_names(loop: TrainingLoop) -> tuple[set[str], ast.stmt | None]:
    """The names in `for x, y in loader`, also inside enumerate; a single one may be anything.

    And in `for batch in loader: x, y = batch`, with that statement.
    """
    if not isinstance(loop.node, ast.For):
        return set(), None
    target = loop.node.target
    tuples = [node for node in ast.walk(target) if isinstance(node, ast.Tuple)]
    if isinstance(target, ast.Name) or len(tuples) == 1:
        single = target if isinstance(target, ast.Name) else tuples[0].elts[-1]
        name = single.id if isinstance(single, ast.Name) else ""
        for statement in loop.every_step:
            if (
                isinstance(statement, ast.Assign)
                and isinstance(statement.targets[0], ast.Tuple)
                and isinstance(statement.value, ast.Name)
                and statement.value.id == name
                # batch = [each.to(device) for each in batch]
                and not _is_changed(loop.node, name)
            ):
                return _names_of(statement.targets[0]), statement
    return (_names_of(tuples[-1]), None) if tuples else (set(), None)


def _is_changed(loop: ast.For, name: str) -> bool:
    return any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        for statement in loop.body
        for node in ast.walk(statement)
    )


def _names_of(node: ast.Tuple) -> set[str]:
    return {each.id for each in node.elts if isinstance(each, ast.Name)}


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


def _touched(loop: ast.For | ast.While, unpacked: ast.stmt | None) -> set[str]:
    """Variables that the body assigns, or of which it uses an attribute, such as y.to."""
    found = set()
    for statement in loop.body:
        for node in ast.walk(statement) if statement is not unpacked else ():
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add(node.value.id)
    return found


def _is_loss(program: Program, function: ast.expr) -> bool:
    """One of PyTorch's, which leave their arguments where they are."""
    if isinstance(function, ast.Call):
        # nn.CrossEntropyLoss()(output, target)
        return _makes_loss(program, function)
    if isinstance(function, ast.Attribute) and _last_word_of(function.value) in _FUNCTIONAL:
        return bool(_LOSS_FUNCTION.fullmatch(function.attr))
    made = _values_by_variable(program).get(_variable(function), [])
    return bool(made) and all(_makes_loss(program, value) for value in made)


@lru_cache(maxsize=1)
def _values_by_variable(program: Program) -> dict[str, list[ast.expr]]:
    """What each variable, and each attribute of self, is set to."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Assign) and _variable(node.targets[0]):
            found.setdefault(_variable(node.targets[0]), []).append(node.value)
    return found


def _makes_loss(program: Program, value: ast.expr) -> bool:
    losses = _calls_of_torch(program)
    return any(
        node in losses
        and isinstance(node, ast.Call)
        and _LOSS_CLASS.fullmatch(_last_word_of(node.func))
        for node in ast.walk(value)
    )


@lru_cache(maxsize=1)
def _calls_of_torch(program: Program) -> frozenset[ast.AST]:
    return frozenset(call.node for call in program.calls() if call.path.startswith("torch.nn."))


def _variable(node: ast.expr) -> str:
    """The x of a variable, and the self.x of an attribute of self."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and _variable(node.value) == "self":
        return f"self.{node.attr}"
    return ""


def _last_word_of(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _source(program: Program, value: ast.expr, batch: set[str], moved: set[str]) -> str:
    """The x of model(x) and of model(x.cuda()), if it was moved."""
    if not isinstance(value, ast.Call) or not _variable(value.func) or not value.args:
        return ""
    given = value.args[0]
    if isinstance(given, ast.Name):
        return given.id if given.id in moved else ""
    for name in batch:
        if _moves(program, given, name):
            return name
    return ""
