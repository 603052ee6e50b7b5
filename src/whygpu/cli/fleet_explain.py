"""What ends the jobs of a cluster? Their logs by cause, by node and by week."""

from __future__ import annotations

import argparse
from functools import partial

from whygpu.cli.arguments import add_color_argument, whole_number
from whygpu.cli.html_file import HtmlFile, add_html_argument
from whygpu.cli.verb_help import VERDICT

EXAMPLES = """\
examples:
  whygpu fleet explain /shared/logs         logs in /shared/logs/NODE/
  whygpu fleet explain logs --node-from '(gpu-[0-9]+)'
  whygpu fleet explain logs --name "slurm-*"
  whygpu fleet explain logs --json | jq '.causes[] | {code, jobs}'
"""

EXIT_CODES = VERDICT

FILE_FIELDS = ("file", "node", "name", "folder")
"""Names of files and nodes are shown as they are: without them, the log cannot be found."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs", metavar="PATH", nargs="+", help="a folder of logs, with all folders below, or a log"
    )
    parser.add_argument(
        "--name",
        metavar="PATTERN",
        action="append",
        default=[],
        dest="names",
        help="read files with such names, not those of *.log, *.out and the like; may be repeated",
    )
    parser.add_argument(
        "--node-from",
        metavar="REGEX",
        help="finds the name of the node in the path of a log (its first group); "
        "default: the first folder of the path",
    )
    parser.add_argument(
        "--workers",
        metavar="N",
        type=whole_number,
        default=0,
        help="processes to use (default: one on each core)",
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        nargs="?",
        const="auto",
        help="use the processes of a Ray cluster, whose nodes all see the logs",
    )
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every row")
    add_html_argument(parser)
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli import output
    from whygpu.cli.progress import counting

    html_file = HtmlFile(options.html)
    report = api.fleet_explain(
        options.logs,
        names=options.names,
        node_from=options.node_from,
        workers=options.workers,
        ray=options.ray,
        on_progress=counting(),
    )
    if options.json:
        from whygpu.render.fleet_logs_json import render

        output.data(report, render, FILE_FIELDS)
    else:
        from whygpu.render.fleet_logs_text import render as render_text

        output.page(
            report,
            partial(render_text, verbose=options.verbose),
            color=options.color,
            names=FILE_FIELDS,
        )
    html_file.write(report, FILE_FIELDS)
    return report.exit_code
