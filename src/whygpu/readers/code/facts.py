"""What a condition implies about lengths: `if gpus`, `len(gpus) > 1`, and their opposites."""

from __future__ import annotations

import ast
from collections.abc import Callable

from whygpu.model.events import Fact
from whygpu.model.values import Constant, Length, Result, Value

Evaluate = Callable[[ast.expr], Value]

_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
    ast.NotEq: ast.NotEq,
}
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.GtE: ast.Lt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}


def facts_of(test: ast.expr, holds: bool, value_of: Evaluate) -> tuple[Fact, ...]:
    """What is known if the test holds, or if it does not."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return facts_of(test.operand, not holds, value_of)
    if isinstance(test, ast.BoolOp):
        # All parts of an `and` hold together; of an `or`, none holds together.
        if isinstance(test.op, ast.And) is holds:
            return tuple(fact for part in test.values for fact in facts_of(part, holds, value_of))
        return ()
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _comparison(test, holds, value_of)
    if not holds:
        return ()
    value = value_of(test)
    if isinstance(value, Length):
        return (Fact(value.of, 1),)
    if isinstance(value, Result) and value.call.path == "builtins.bool":
        return _truth(value.call.argument(0))
    return _truth(value)


def _truth(value: Value) -> tuple[Fact, ...]:
    return (Fact(value, 1),) if value is not None else ()


def _comparison(test: ast.Compare, holds: bool, value_of: Evaluate) -> tuple[Fact, ...]:
    left, right = value_of(test.left), value_of(test.comparators[0])
    operator = type(test.ops[0])
    if isinstance(right, Length) and isinstance(left, Constant):
        left, right = right, left
        operator = _MIRRORED.get(operator, operator)
    if not holds:
        operator = _OPPOSITE.get(operator, ast.Is)
    if isinstance(right, Constant) and not right.value and operator is ast.NotEq:
        # gpus != [] and len(gpus) != 0
        return (Fact(left.of if isinstance(left, Length) else left, 1),)
    if not isinstance(left, Length):
        return ()
    if not isinstance(right, Constant):
        # Compared with an unknown value: assume that the author has checked the length.
        return (Fact(left.of, 1 << 30),)
    number = right.value
    if not isinstance(number, int):
        return ()
    if operator is ast.Gt:
        return (Fact(left.of, number + 1),)
    if operator in (ast.GtE, ast.Eq):
        return (Fact(left.of, number),)
    return ()
