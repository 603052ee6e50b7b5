"""Record each check and run, to say what changed since it last worked."""

from __future__ import annotations

import argparse

from whygpu.cli.arguments import add_color_argument, whole_number
from whygpu.errors import UsageError

EXAMPLES = """\
examples:
  whygpu history on            from now on, record each check and run
  whygpu history               what was recorded, the newest first
  whygpu history export 12     the snapshot of run 12, for `whygpu diff`
  whygpu history off           record nothing more, keep what there is
  whygpu history clear         remove everything that was recorded

A record has a snapshot without private data. It stays on this machine, in the
user's folder for state. At most 200 are kept.
"""

EXIT_CODES = {"0": "done", "2": "wrong usage, or the history cannot be used"}

_ACTIONS = ("show", "on", "off", "clear", "export")
_LISTED = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        choices=_ACTIONS,
        default="show",
        help="what to do (default: show)",
    )
    parser.add_argument(
        "number", nargs="?", metavar="NUMBER", type=whole_number, help="for export: which run"
    )
    parser.add_argument(
        "-n",
        dest="most",
        metavar="COUNT",
        type=whole_number,
        default=_LISTED,
        help=f"for show: how many runs to list (default: {_LISTED})",
    )
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli import output

    if (options.action == "export") != (options.number is not None):
        raise UsageError("a number goes with export: whygpu history export 12")
    if options.most < 0:
        raise UsageError(f"-n {options.most}: expected how many runs to list")
    if options.action == "export":
        from whygpu.render.check_json import render_snapshot

        output.data(api.recorded_snapshot(options.number), render_snapshot)
        return 0
    if options.action == "clear":
        found = api.clear_history()
    elif options.action == "show":
        found = api.history(options.most)
    else:
        found = api.record_history(options.action == "on")
    if options.json:
        from whygpu.render.history_json import render as render_json

        output.data(found, render_json)
    else:
        from whygpu.render.history_text import render

        output.page(found, render, color=options.color)
    return 0
