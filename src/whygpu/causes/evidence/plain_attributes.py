"""Tensors that a PyTorch module keeps in plain attributes, which .to() and .cuda() do not move."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.torch_tensors import makes_axes
from whygpu.causes.evidence.training_loops import mentions, uses_gpu
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program
from whygpu.model.values import Instance

_MODULES = frozenset({"Module", "LightningModule"})
_MOVES_ITSELF = frozenset({"to", "cuda", "_apply"})
_MOVES = ("to", "cuda")
_DEFAULT_DEVICE = late(r"\bwith (?:torch\.device\(|device\b)")
"""It decides where new tensors are."""
_DESCRIBES = frozenset({"shape", "size", "dim", "ndim", "dtype", "numel"})


class LeftBehind(NamedTuple):
    """self.scale in `x * self.scale`, where x is what the module is given."""

    node: ast.BinOp
    attribute: ast.Attribute
    owner: str
    is_moved: bool
    """This file moves an object of the class."""


def tensors_left_behind(program: Program) -> Iterator[LeftBehind]:
    if not uses_gpu(program) or _DEFAULT_DEVICE.search(program.text):
        return
    made = {call.node for call in program.calls() if makes_axes(call)}
    moved = {
        call.receiver.definition.node
        for call in program.calls()
        if call.method in _MOVES and isinstance(call.receiver, Instance)
    }
    for node in ast.walk(program.tree) if made else ():
        if isinstance(node, ast.ClassDef) and _is_module(node):
            names = {name for name in _set_once(node, made) if _stays(program, name)}
            for operation, attribute in _joined(node, names) if names else ():
                yield LeftBehind(operation, attribute, node.name, node in moved)


def _is_module(node: ast.ClassDef) -> bool:
    methods = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    return not methods & _MOVES_ITSELF and any(
        (base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")) in _MODULES
        for base in node.bases
    )


def _set_once(owner: ast.ClassDef, made: set[ast.Call]) -> Iterator[str]:
    """The attributes that __init__ sets to a new tensor, and nothing sets again."""
    values: dict[str, list[ast.expr | None]] = {}
    for node in ast.walk(owner):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            values.setdefault(node.attr, []).append(None)
    for method in owner.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            for each in method.body:
                if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Attribute):
                    values[each.targets[0].attr].append(each.value)
    for name, given in values.items():
        if len(given) == 2 and isinstance(given[1], ast.Call) and given[1] in made:
            yield name


def _stays(program: Program, name: str) -> bool:
    """No part of the file moves it, sets it from outside, asks for its device, or names it in a
    string."""
    if f'"{name}"' in program.text or f"'{name}'" in program.text:
        return False
    for node in ast.walk(program.tree):
        if isinstance(node, ast.Attribute) and node.attr == name:
            parent = program.parent(node)
            if isinstance(node.ctx, ast.Store) and not _of_self(node):
                return False
            if isinstance(parent, ast.Attribute) and parent.attr not in _DESCRIBES:
                return False
    return True


def _joined(owner: ast.ClassDef, names: set[str]) -> Iterator[tuple[ast.BinOp, ast.Attribute]]:
    for method in owner.body:
        if not isinstance(method, ast.FunctionDef) or method.name != "forward":
            continue
        given = frozenset(argument.arg for argument in method.args.args[1:2])
        if any(_moves_given(node, given) for node in ast.walk(method)):
            continue
        for node in ast.walk(method):
            if isinstance(node, ast.BinOp):
                for one, other in ((node.left, node.right), (node.right, node.left)):
                    if _of_self(one) in names and _is_tensor(other, given):
                        assert isinstance(one, ast.Attribute)
                        yield node, one


def _moves_given(node: ast.AST, given: frozenset[str]) -> bool:
    """x.cpu(), x.to(...)"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("cpu", *_MOVES)
        and getattr(node.func.value, "id", "") in given
    )


def _of_self(node: ast.expr) -> str:
    is_own = isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"
    return node.attr if is_own and isinstance(node, ast.Attribute) else ""


def _is_tensor(node: ast.expr, given: frozenset[str]) -> bool:
    """What the module is given, or what a part of it computes from that."""
    if isinstance(node, ast.Name):
        return node.id in given
    if isinstance(node, ast.BinOp):
        return _is_tensor(node.left, given) or _is_tensor(node.right, given)
    return (
        isinstance(node, ast.Call)
        and bool(_of_self(node.func))
        and any(mentions(each, given) for each in node.args)
    )
