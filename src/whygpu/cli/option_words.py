"""Writes the options in an error message as they are typed on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from whygpu.errors import Option, UserError


def message(error: UserError, words: Sequence[str]) -> str:
    """The error's message, with its option as the user typed it."""
    from whygpu.cli.parser import parser

    actions = list(options(parser(words[0] if words else "check"), words))
    return error.written(lambda option: _written(option, actions))


def options(parser: argparse.ArgumentParser, words: Sequence[str]) -> Iterator[argparse.Action]:
    """The options of the verb, and of the subverb, that the words name; the innermost first."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            named = next((word for word in words if word in action.choices), None)
            if named is not None:
                yield from options(action.choices[named], words)
    yield from (action for action in parser._actions if action.option_strings)


def _written(option: Option, actions: Sequence[argparse.Action]) -> str:
    mine = [action for action in actions if action.dest == option.name]
    typed = mine[0].option_strings[-1] if mine else f"--{option.name.replace('_', '-')}"
    value = option.value
    if value is None:
        return typed
    if isinstance(value, bool):
        flags = [action for action in mine if action.nargs == 0 and action.const is value]
        # What takes one word only has it for a name: --require gpu, --cudnn off.
        words = [
            f"{action.option_strings[-1]} {action.metavar}" for action in mine if action.metavar
        ]
        return next((flag.option_strings[-1] for flag in flags), (words or [typed])[0])
    from whygpu.model.shell import quoted

    return f"{typed} {value:g}" if isinstance(value, float) else f"{typed} {quoted(str(value))}"
