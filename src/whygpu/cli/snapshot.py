"""Save what is seen of this machine and environment, private data removed."""

from __future__ import annotations

import argparse
import sys

from whygpu.cli.check import add_target_arguments
from whygpu.errors import UsageError

EXAMPLES = """\
examples:
  whygpu snapshot -o machine.json      to post in an issue
  whygpu snapshot --no-probe           to standard output, from files only
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_target_arguments(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="-", help="where to (default: standard output)"
    )


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli.progress import progress
    from whygpu.cli.terminal import write
    from whygpu.render.json import render_snapshot

    with progress() as show:
        taken = api.snapshot(
            options.python,
            probe=not options.no_probe,
            timeout=options.timeout,
            on_progress=show,
        )
    text = render_snapshot(taken)
    if options.output == "-":
        write(text)
        return 0
    try:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"cannot write {options.output}: {error.strerror}; choose another file with -o"
        ) from error
    print(f"whygpu: snapshot saved to {options.output}", file=sys.stderr)
    return 0
