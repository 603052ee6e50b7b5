"""What a verb's page of help says beside its options: from the verb's module, for every verb."""

from __future__ import annotations

from whygpu.errors import exit_code_of_bug, exit_code_of_usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

VERDICT = {"0": "nothing wrong", "1": "something found", "4": "cannot tell"}
"""The exit codes of a verb that judges, beside those for wrong usage and for a bug."""
DONE = {"0": "done"}
"""Those of a verb that judges nothing."""


def describe(parser: argparse.ArgumentParser, module: Any) -> None:
    """The module of a verb has a first line, EXAMPLES and EXIT_CODES."""
    parser.description = module.__doc__.partition("\n")[0]
    parser.epilog = f"{module.EXAMPLES}\n{exit_codes(module.EXIT_CODES, parser.prog)}"


def add_subverbs(
    parser: argparse.ArgumentParser, modules: Mapping[str, Any], *, required: bool
) -> list[argparse.ArgumentParser]:
    """A parser for each subverb; its module is like that of a verb."""
    subverbs = parser.add_subparsers(
        dest="subverb", metavar="SUBVERB", title="subverbs", required=required
    )
    made = []
    for name, module in modules.items():
        below = subverbs.add_parser(
            name,
            help=module.__doc__.partition("\n")[0],
            formatter_class=parser.formatter_class,
        )
        describe(below, module)
        module.add_arguments(below)
        made.append(below)
    return made


def exit_codes(own: Mapping[str, str], command: str = "whygpu") -> str:
    """The last section of the page; `own` are the codes whose meaning is the verb's own."""
    words = command.split()[1:]
    usage, bug = str(exit_code_of_usage(words)), str(exit_code_of_bug(words))
    codes = {usage: "wrong usage", bug: "a bug in whygpu", **own}
    lines = (f"  {code:<7}{codes[code]}" for code in sorted(codes, key=_place))
    return "\n".join(("exit codes:", *lines, ""))


def _place(code: str) -> int:
    """By number; what is no number (any other) comes last."""
    number = code.partition("+")[0]
    return int(number) if number.isdecimal() else 1000
