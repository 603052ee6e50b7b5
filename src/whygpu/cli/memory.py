"""Who holds GPU memory, and what would a new process take?"""

from __future__ import annotations

import argparse
from typing import Any

from whygpu.cli import memory_estimate, memory_find
from whygpu.cli.arguments import add_color_argument, add_python_argument
from whygpu.cli.html_file import HtmlFile, add_html_argument
from whygpu.cli.verb_help import add_subverbs

SUBVERBS: dict[str, Any] = {"estimate": memory_estimate, "find": memory_find}
"""Modules as those of the verbs: a first line, EXAMPLES, EXIT_CODES, add_arguments, run."""

EXAMPLES = """\
examples:
  whygpu memory                        each GPU, its processes, what is left
  whygpu memory --gpu 1                one GPU, by number or by name
  whygpu memory --json                 for scripts
  whygpu memory --snapshot FILE        another machine, from its snapshot
  whygpu memory estimate model.keras   what a model needs, before it is run
  whygpu memory find train.py:step     the largest batch that fits
"""

EXIT_CODES = {"0": "answered (also: there is no GPU)", "4": "cannot tell"}

_OPTIONS = {
    "gpu": "--gpu",
    "python": "--python",
    "snapshot": "--snapshot",
    "json": "--json",
    "html": "--html",
}
"""The options of the bare verb. A subverb has its own, behind its name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--gpu",
        metavar="GPU",
        dest="holders_gpu",
        help="only this GPU: 0, several (0,2), or a name",
    )
    add_python_argument(parser, "whose frameworks would be started", dest="holders_python")
    parser.add_argument(
        "--snapshot",
        metavar="FILE",
        dest="holders_snapshot",
        help="judge a saved snapshot instead (- for stdin)",
    )
    parser.add_argument(
        "--json", action="store_const", const=True, dest="holders_json", help="print it as JSON"
    )
    add_html_argument(parser, "holders_html")
    add_color_argument(parser)
    for subverb in add_subverbs(parser, SUBVERBS, required=False):
        for action in subverb._actions:
            if action.dest == "color":
                # Its default would undo a --color that stands before the subverb.
                action.default = argparse.SUPPRESS


def run(options: argparse.Namespace) -> int:
    if options.subverb is not None:
        _refuse_misplaced(options)
        code: int = SUBVERBS[options.subverb].run(options)
        return code
    return _run_holders(options)


def _refuse_misplaced(options: argparse.Namespace) -> None:
    """An option before the subverb would be ignored silently."""
    from whygpu.errors import UsageError

    for name, option in _OPTIONS.items():
        if getattr(options, f"holders_{name}") is not None:
            raise UsageError(
                f"{option} belongs to `whygpu memory` alone; what {options.subverb} takes comes "
                f"after its name: whygpu memory {options.subverb} ..."
            )


def _run_holders(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli import output
    from whygpu.render.memory_holders import render, render_json

    html_file = HtmlFile(options.holders_html)
    given = options.holders_snapshot
    report = api.memory_holders(
        options.holders_python,
        gpu=options.holders_gpu,
        machine=api.load_snapshot(given) if given is not None else None,
    )
    if options.holders_json:
        output.data(report, render_json)
    else:
        output.page(report, render, color=options.color)
    html_file.write(report)
    return report.exit_code
