"""What changed between two machines, environments or days, and does it matter?"""

from __future__ import annotations

import argparse
from functools import partial

from whygpu.cli.arguments import add_color_argument, seconds
from whygpu.cli.html_file import HtmlFile, add_html_argument
from whygpu.probes import DEFAULT_TIMEOUT

EXAMPLES = """\
examples:
  whygpu snapshot -o good.json        while it works
  whygpu diff good.json               later: what changed, and is it the reason?
  whygpu diff good.json bad.json      two machines, or two days
  whygpu diff ~/old-venv ~/new-venv   two environments of this machine
  whygpu diff good.json --no-probe    files only, in a fraction of a second

To find which difference matters, whygpu puts each one, and groups of them, into
the machine that works, and judges the result as `whygpu check` does.
"""

EXIT_CODES = {
    "0": "no worse than before",
    "1": "worse, or something new was found",
    "4": "cannot tell",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "before",
        metavar="BEFORE",
        help="a snapshot, the output of `check --json`, or an environment (- for stdin)",
    )
    parser.add_argument(
        "after",
        metavar="AFTER",
        nargs="?",
        help="the same; default: the active environment of this machine, now",
    )
    parser.add_argument(
        "--no-probe",
        dest="probe",
        action="store_false",
        help="for environments: read files only; do not run the frameworks",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=DEFAULT_TIMEOUT,
        help=f"time limit for running each framework (default: {DEFAULT_TIMEOUT:.0f})",
    )
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument("-v", "--verbose", action="store_true", help="list every difference")
    add_html_argument(parser)
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    from whygpu import api
    from whygpu.cli import output
    from whygpu.cli.progress import progress

    html_file = HtmlFile(options.html)
    with progress("comparing ...") as show:
        answer = api.diff(
            options.before,
            options.after,
            probe=options.probe,
            timeout=options.timeout,
            on_progress=show,
        )
    if options.json:
        from whygpu.render.diff_json import render

        output.data(answer, render)
    else:
        from whygpu.render.diff_text import PLAIN_SIGNS
        from whygpu.render.diff_text import render as render_text

        output.page(
            answer,
            partial(render_text, verbose=options.verbose),
            color=options.color,
            signs=PLAIN_SIGNS,
        )
    html_file.write(answer)
    return answer.exit_code
