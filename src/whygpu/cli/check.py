"""Does each framework use the GPU? If not: the root cause, the evidence, the fix."""

from __future__ import annotations

import argparse
from functools import partial

from whygpu.cli.arguments import (
    add_color_argument,
    add_data_arguments,
    add_python_argument,
    seconds,
)
from whygpu.cli.html_file import HtmlFile, add_html_argument
from whygpu.cli.verb_help import VERDICT
from whygpu.errors import UsageError
from whygpu.host.state_folder import is_recording
from whygpu.probes import DEFAULT_TIMEOUT, STRESS_SECONDS

EXAMPLES = """\
examples:
  whygpu check                         the active environment
  whygpu check --python ~/old/bin/python
  whygpu check --no-probe              files only, in a fraction of a second
  whygpu check --stress                also: is the GPU fast, and right?
  whygpu check --json > report.json    or --sarif, for code scanning
  whygpu check --html report.html      a page to look at, or to send
  whygpu check --snapshot FILE         another machine, from its snapshot
"""

EXIT_CODES = VERDICT


def add_target_arguments(parser: argparse.ArgumentParser) -> None:
    """What check and snapshot share: which interpreter to look at, and how far to go."""
    add_python_argument(parser, "to examine")
    parser.add_argument(
        "--no-probe",
        dest="probe",
        action="store_false",
        help="read files only; do not run the frameworks (leaves some things unknown)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=DEFAULT_TIMEOUT,
        help=f"time limit for running each framework (default: {DEFAULT_TIMEOUT:.0f})",
    )


def add_stress_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stress",
        metavar="SECONDS",
        nargs="?",
        type=seconds,
        const=STRESS_SECONDS,
        help="also put each unused GPU under load, for this many seconds (default: "
        f"{STRESS_SECONDS:.0f}): its speed, its clocks, and whether its results are right",
    )


def add_stress_arguments(parser: argparse.ArgumentParser) -> None:
    add_stress_argument(parser)
    parser.add_argument(
        "--stress-busy",
        action="store_true",
        help="with --stress: also test GPUs that other processes use, which disturbs them",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    add_stress_arguments(parser)
    parser.add_argument(
        "--snapshot", metavar="FILE", help="diagnose a saved snapshot instead (- for stdin)"
    )
    add_data_arguments(parser, "the report")
    add_html_argument(parser)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show the outcome of every cause"
    )
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli import output
    from whygpu.cli.progress import progress

    html_file = HtmlFile(options.html)
    if options.snapshot is not None:
        if options.stress is not None:
            raise UsageError("a saved snapshot cannot be put under load", option="stress")
        report = api.diagnose(api.load_snapshot(options.snapshot))
    else:
        with progress() as show:
            report = api.check(
                options.python,
                probe=options.probe,
                timeout=options.timeout,
                stress=options.stress,
                stress_busy=options.stress_busy,
                on_progress=show,
            )
    if options.json:
        from whygpu.render.check_json import render

        output.data(report, render)
    elif options.sarif:
        from whygpu.render.finding_sarif import render_check
        from whygpu.version import VERSION

        causes = api.causes_of(report.findings)
        output.data(report, partial(render_check, causes=causes, version=VERSION))
    else:
        from whygpu.render.check_text import render as render_text

        output.page(
            report,
            partial(
                render_text,
                verbose=options.verbose,
                by_default=options.python is None and options.snapshot is None,
            ),
            color=options.color,
        )
    html_file.write(report)
    if options.snapshot is None and is_recording():
        from whygpu.cli.remembering import after_check

        after_check(report, silent=options.json or options.sarif, color=options.color)
    return report.exit_code
