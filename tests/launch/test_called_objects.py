"""What an expression of the program calls, from its text and the frame that executes it."""

from __future__ import annotations

import ast
import decimal
import sys
from typing import Any
from unittest.mock import ANY

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
    "(tensor * missing).sum() + row": "torch.?.operator",
    "make(row).T @ missing": "torch.?.operator",
    "make(row)[0].pow(2)": "torch.?.pow",
    "model(missing).mean() / 4": "torch.?.operator",
    "model.forward(row).pow(2)": "torch.?.pow",
    "missing(row).mean()": "?.mean",
    "row == column": "",
    "1 < row + column <= 4": "",
    "not row": "",
    "row < precise": "decimal.Decimal.operator",
    "row == missing": "?",
    "model(missing) > 0.5": "torch.?.operator",
}


class Tensor:
    """Stands for torch.Tensor: only its module counts."""


class Module:
    def __call__(self) -> None: ...


def make() -> None: ...


Tensor.__module__ = Module.__module__ = make.__module__ = "torch.any"


class Model(Module):
    """A model of the program."""


def described(text: str) -> str:
    """In a function without assert statements: pytest makes those read the local variables."""
    row, column, precise = 3, 4.5, decimal.Decimal(2)
    tensor, model = Tensor(), Model()
    node = ast.parse(text, mode="eval").body
    found: str = called_objects._described(node, sys._getframe())
    del row, column, precise, tensor, model
    return found


@each("text", CASES)
def test_arithmetic_of_numbers_is_pythons_own_work(text: str) -> None:
    assert described(text) == CASES[text]


class Frames:
    """The place of a caller, as the sampler would see it while it calls this."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, str]] = []

    def look(self) -> None:
        frame = sys._getframe(1)
        code, at = frame.f_code, frame.f_lasti
        text = called_objects.expression(code, at, frame.f_lineno, frame.f_globals)
        self.texts.append((text, called_objects.called(frame, code, at, text)))


# fmt: off
def loop_in_one_line(frames: Frames) -> None:
    for _ in range(1): frames.look()  # noqa: E701
# fmt: on


def test_a_body_on_the_line_of_its_loop_is_no_iteration() -> None:
    """What the body calls was taken for the loop's iterator, and called the program's own code."""
    frames = Frames()
    loop_in_one_line(frames)
    name = f"{Frames.__module__}.Frames.look"
    exact = sys.version_info >= (3, 11)
    expected = ("frames.look()", name) if exact else (ANY, "?")
    assert frames.texts == [expected]
