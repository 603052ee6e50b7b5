"""Write the completions of the command line for bash, zsh and fish, with shtab."""

from __future__ import annotations

import argparse
import pathlib
from collections.abc import Iterator

import shtab

import whygpu
from whygpu.cli.completion import FILES
from whygpu.cli.parser import VERBS, parser
from whygpu.planner.wishes import FRAMEWORKS

FOLDER = pathlib.Path(whygpu.__path__[0]) / "completions"

_FILE_NAMES = frozenset({"FILE", "PATH", "PYTHON", "WHAT"})
"""What an argument is called that takes the name of a file."""


def files() -> dict[str, str]:
    """File name to text."""
    whole = parser(*VERBS)
    for action in _actions(whole):
        if action.metavar in _FILE_NAMES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar == "FRAMEWORK":
            action.choices = FRAMEWORKS
        elif action.metavar in ("CODE", "CODES"):
            action.choices = [cause.code for cause in whygpu.rules()]
    return {name: shtab.complete(whole, shell) for shell, name in FILES.items()}


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from _actions(below)


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
