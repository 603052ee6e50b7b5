"""Check, memory and plan of this machine on one page, to send to somebody."""

from __future__ import annotations

import argparse

from whygpu.cli.check import add_target_arguments
from whygpu.cli.html_file import HtmlFile
from whygpu.cli.verb_help import VERDICT

EXAMPLES = """\
examples:
  whygpu report                        writes whygpu-report.html
  whygpu report -o page.html           writes another file
  whygpu report --no-probe             from files only, in a second
  whygpu report --snapshot FILE        another machine, from its snapshot

The page needs no network and loads nothing. Home folders, names of users and
machines, addresses and keys that whygpu recognises are removed.
"""

EXIT_CODES = VERDICT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    parser.add_argument(
        "--snapshot", metavar="FILE", help="report on a saved snapshot instead (- for stdin)"
    )
    parser.add_argument(
        "-o",
        "--output",
        "--html",
        metavar="FILE",
        default="whygpu-report.html",
        help="the file to write (default: whygpu-report.html)",
    )


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli.progress import progress

    html_file = HtmlFile(options.output, option="--output")
    machine = api.load_snapshot(options.snapshot) if options.snapshot is not None else None
    with progress() as show:
        overview = api.report(
            options.python,
            machine=machine,
            probe=options.probe,
            timeout=options.timeout,
            on_progress=show,
        )
    html_file.write(overview)
    return overview.exit_code
