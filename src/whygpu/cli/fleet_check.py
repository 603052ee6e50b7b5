"""Check every node of a cluster now, and say which are not like the others."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from whygpu.cli.arguments import seconds
from whygpu.cli.check import add_stress_argument, add_target_arguments
from whygpu.cli.fleet_report import add_report_arguments, show
from whygpu.cli.verb_help import VERDICT
from whygpu.fleet.gathering import NODE_LIMIT

if TYPE_CHECKING:
    from whygpu.model.fleet import FleetReport

EXAMPLES = """\
examples:
  whygpu fleet check --ray                   the Ray cluster of this machine
  whygpu fleet check --ray 10.0.0.1:6379     another one
  whygpu fleet check --ray --no-probe        files and drivers only, in seconds
  whygpu fleet check --ray --keep snapshots  keep them for `fleet report`

whygpu has to be installed on the nodes. No node's resources are taken.
"""

EXIT_CODES = VERDICT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        nargs="?",
        const="auto",
        required=True,
        help="run on the nodes of a Ray cluster; default address: the cluster of this machine",
    )
    parser.add_argument(
        "--node-limit",
        metavar="SECONDS",
        type=seconds,
        help=f"a node without an answer by then counts as hung (default: {NODE_LIMIT:.0f}, and 16 "
        "times the seconds of --stress more)",
    )
    parser.add_argument("--keep", metavar="FOLDER", help="save the snapshots there")
    add_target_arguments(parser)
    add_stress_argument(parser)
    add_report_arguments(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli.progress import counting

    def report_now() -> FleetReport:
        return api.fleet_check(
            options.ray,
            python=options.python,
            probe=options.probe,
            timeout=options.timeout,
            stress=options.stress,
            node_limit=options.node_limit,
            keep=options.keep,
            expect=options.expect,
            on_progress=counting(),
        )

    return show(report_now, options)
