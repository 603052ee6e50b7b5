"""A piece of the user's work, as named on the command line."""

from __future__ import annotations

from typing import Literal, NamedTuple

WhatKind = Literal["model-file", "function", "script", "noted"]


class What(NamedTuple):
    """What the user named: a Keras model's file, a function of a file, or a script.

    `noted` is a model that a program recorded when memory ran out.
    """

    kind: WhatKind
    path: str
    """Absolute: a worker may run in another folder."""
    name: str = ""
    """The name of the function."""

    def __str__(self) -> str:
        return f"{self.path}:{self.name}" if self.name else self.path
