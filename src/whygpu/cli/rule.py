"""The page of one cause: why it happens, what it looks like, how to fix it."""

from __future__ import annotations

import argparse

from whygpu.errors import UsageError

EXAMPLES = """\
examples:
  whygpu rule WG203
  whygpu rule library-path-conflict
  whygpu rule                          a line for each cause
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="CODE", help="a code or name; none lists all")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")


def run(options: argparse.Namespace) -> int:
    from whygpu.causes import catalogue, find_cause
    from whygpu.cli import output
    from whygpu.render import rule_page

    if options.name is None:
        chosen = catalogue()
    else:
        cause = find_cause(options.name)
        if cause is None:
            raise UsageError(_unknown(options.name))
        chosen = (cause,)
    if options.json:
        output.own(rule_page.render_json(chosen))
    elif options.name is None:
        output.own(rule_page.render_list(chosen))
    else:
        color = output.use_color(options.color)
        output.own(rule_page.render(chosen[0], width=output.width(), color=color))
    return 0


def _unknown(name: str) -> str:
    import difflib

    from whygpu.causes import catalogue

    names = [word for cause in catalogue() for word in (cause.code, cause.slug)]
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    return f"there is no cause {name!r}; {hint}`whygpu rule` lists them all"
