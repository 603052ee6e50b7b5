"""Save what whygpu sees of this machine and environment, without private data."""

from __future__ import annotations

import argparse

from whygpu.cli.check import add_stress_arguments, add_target_arguments
from whygpu.cli.verb_help import DONE

EXAMPLES = """\
examples:
  whygpu snapshot -o machine.json      to post in an issue
  whygpu snapshot --no-probe           to standard output, from files only
"""

EXIT_CODES = DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    add_stress_arguments(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="-",
        help="the file to write (default: standard output)",
    )


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli import output
    from whygpu.cli.progress import progress
    from whygpu.render.check_json import render_snapshot

    with progress() as show:
        taken = api.snapshot(
            options.python,
            probe=options.probe,
            timeout=options.timeout,
            stress=options.stress,
            stress_busy=options.stress_busy,
            on_progress=show,
        )
    if options.output == "-":
        output.data(taken, render_snapshot)
        return 0
    output.save(options.output, taken, render_snapshot, is_json=True)
    output.say(f"snapshot saved to {options.output}")
    return 0
