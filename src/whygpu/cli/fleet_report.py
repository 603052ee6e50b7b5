"""Judge the snapshots of many nodes: root causes, and which nodes are different."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from whygpu.cli import fleet_metrics
from whygpu.cli.arguments import add_color_argument
from whygpu.cli.html_file import HtmlFile, add_html_argument
from whygpu.cli.verb_help import VERDICT

if TYPE_CHECKING:
    from whygpu.model.fleet import FleetReport

EXAMPLES = """\
examples:
  whygpu fleet report snapshots/                 a file NODE.json for each node
  whygpu fleet report snapshots/ --expect FILE   name the missing nodes, too
  whygpu fleet report snapshots/ --html fleet.html
  whygpu fleet report snapshots/ --json | jq .drift
  whygpu fleet report snapshots/ --metrics whygpu.prom   for node_exporter

On each node: whygpu snapshot -o snapshots/$(hostname).json
"""

EXIT_CODES = VERDICT

NODE_FIELDS = ("node", "nodes", "names", "unexpected", "folder")
"""Names of nodes are shown as they are: without them, the machine cannot be found."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "snapshots",
        metavar="PATH",
        nargs="+",
        help="a folder of snapshots (its .json files, also in folders below), or a snapshot",
    )
    add_report_arguments(parser)


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Which nodes should be in the report, and how it is shown."""
    parser.add_argument(
        "--expect",
        metavar="FILE",
        help="a list of all nodes, such as a hostfile (- for stdin): report those that are missing",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="name every node and every value"
    )
    add_html_argument(parser)
    fleet_metrics.add_metrics_arguments(parser)
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli.progress import counting

    def report_now() -> FleetReport:
        return api.fleet_report(options.snapshots, expect=options.expect, on_progress=counting())

    return show(report_now, options)


def show(report_now: Callable[[], FleetReport], options: argparse.Namespace) -> int:
    """Make the report, print it and write its files; a new one is made while it is served."""
    from whygpu.cli import output

    html_file = HtmlFile(options.html)
    fleet_metrics.require_client(options)
    report = report_now()
    if options.json:
        from whygpu.render.fleet_json import render

        output.data(report, render, NODE_FIELDS)
    else:
        from whygpu.render.fleet_text import render as render_text

        output.page(
            report,
            partial(render_text, verbose=options.verbose),
            color=options.color,
            names=NODE_FIELDS,
        )
    html_file.write(report, NODE_FIELDS)
    if options.metrics is not None:
        fleet_metrics.save(options.metrics, report, NODE_FIELDS)
    if options.serve is not None:
        fleet_metrics.serve(options.serve, options.every, report, NODE_FIELDS, report_now)
    return report.exit_code
