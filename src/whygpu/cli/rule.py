"""The page of one cause: why it happens, what it looks like, how to fix it."""

from __future__ import annotations

import argparse
import sys

from whygpu.cli.arguments import add_color_argument
from whygpu.cli.verb_help import DONE

EXAMPLES = """\
examples:
  whygpu rule WG203
  whygpu rule library-path-conflict
  whygpu rule cudnn                    the causes whose pages have this word
  whygpu rule WG203 --examples         with the examples that it is tested on
  whygpu rule                          a line for each cause
  whygpu rule --json                   all pages, for programs
"""

EXIT_CODES = DONE


_WHOLE_LINES = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        metavar="CODE",
        help="a code, a name or a word to search for; none lists all",
    )
    parser.add_argument(
        "--examples",
        action="store_true",
        help="show the examples too: machines, logs and code with this cause and without it",
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.api import pages
    from whygpu.cli import output
    from whygpu.render import rule_page

    chosen = api.rules() if options.name is None else pages.search(options.name)
    if options.json:
        proofs = [pages.proofs(cause) for cause in chosen]
        output.own(rule_page.render_json(chosen, proofs, examples=options.examples))
    elif options.name is None or len(chosen) > 1:
        output.own(rule_page.render_list(chosen, width=_list_width()))
    else:
        (cause,) = chosen
        proven, color = pages.proofs(cause), output.use_color(options.color)
        style = {"examples": options.examples}
        if color or sys.stdout.isatty():
            shown = rule_page.render(cause, proven, width=output.width(), color=color, **style)
        else:
            shown = rule_page.page_text(cause, proven, **style)
        output.own(shown)
    return 0


def _list_width() -> int:
    """In a pipe, a cause is one line, for grep."""
    from whygpu.cli import output

    return output.width() if sys.stdout.isatty() else _WHOLE_LINES
