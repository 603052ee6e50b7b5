"""What an expression of the program calls, from its text and the frame that executes it."""

from __future__ import annotations

import ast
import decimal
import sys
from typing import Any

from tests.cases import each
from whygpu.launch.inprocess import bootstrap

called_objects: Any = bootstrap("profile.called_objects")

CASES = {
    "(row * column) % 7": "",
    "float((row * column) % 7)": "builtins.float",
    "float(-row)": "builtins.float",
    "precise * row": "decimal.Decimal.operator",
    "float(precise * 2)": "decimal.Decimal.item",
    "row * missing": "?",
    "float(missing)": "?",
}


def described(text: str) -> str:
    """In a function without assert statements: pytest makes those read the local variables."""
    row, column, precise = 3, 4.5, decimal.Decimal(2)
    node = ast.parse(text, mode="eval").body
    found: str = called_objects._described(node, sys._getframe())
    del row, column, precise
    return found


@each("text", CASES)
def test_arithmetic_of_numbers_is_pythons_own_work(text: str) -> None:
    assert described(text) == CASES[text]
