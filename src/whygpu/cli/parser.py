"""The parser of the command line: words to a verb and its options."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from whygpu.cli.help_page import SUMMARIES, USAGE, columns, help_page
from whygpu.cli.process_setup import Ending
from whygpu.cli.suggestions import Parser, refuse_unknown
from whygpu.cli.verb_help import describe
from whygpu.errors import EXIT_USAGE, exit_code_of_usage
from whygpu.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Verbs(dict[str, "Any"]):
    """The modules of the verbs by their names, each imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        module = super().__getitem__(name)
        return import_module(f"whygpu.cli.{name}") if module is None else module


VERBS = Verbs((name, None) for name in SUMMARIES)


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """argparse's own would import shutil, and with it three compression libraries."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns())

    def _format_action(self, action: argparse.Action) -> str:
        text = super()._format_action(action)
        # The list of subverbs has a title, and needs no line that says SUBVERB.
        is_list = isinstance(action, argparse._SubParsersAction)
        return text.partition("\n")[2] if is_list else text


class TopParser(Parser):
    """whygpu itself, whose page of help exists without argparse."""

    def format_help(self) -> str:
        return help_page()


def parser(*complete: str) -> argparse.ArgumentParser:
    """The parser. Only the verbs in `complete` have arguments: the others would take time."""
    top = TopParser(prog="whygpu", usage=USAGE)
    top.add_argument("--version", action="version", version=f"whygpu {VERSION}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", prog="whygpu", parser_class=Parser)
    for name in VERBS:
        below = verbs.add_parser(
            name, help=SUMMARIES.get(name), add_help=name in complete, formatter_class=HelpFormatter
        )
        if name in complete:
            module = VERBS[name]
            describe(below, module)
            module.add_arguments(below)
    return top


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """`whygpu` alone, or with options only, is `whygpu check`."""
    words = list(arguments)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words.insert(0, "check")
    whole = parser(words[0])
    try:
        options, unknown = whole.parse_known_args(words)
        if unknown:
            refuse_unknown(whole, words, unknown)
        return options
    except SystemExit as stop:
        code = exit_code_of_usage(words) if stop.code == EXIT_USAGE else stop.code
        raise Ending(code) from None
