"""What does this log mean? The root cause, the lines that prove it, the fix."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from whygpu.cli import output
from whygpu.cli.arguments import add_color_argument, add_data_arguments
from whygpu.cli.html_file import HtmlFile, add_html_argument
from whygpu.errors import UsageError

if TYPE_CHECKING:
    from whygpu.model.explanation import Explanation
    from whygpu.model.snapshot import Snapshot

EXAMPLES = """\
examples:
  whygpu explain train.log               a log from any machine, of any year
  python train.py 2>&1 | whygpu explain  a program's output, as it comes
  whygpu explain --here train.log        compare it with what is on this machine
  whygpu explain train.log.gz            compressed: gzip, bzip2, xz, zstd
  whygpu explain --json *.log            one line of JSON for each file
  whygpu explain --sarif *.log           one document, for code scanning
  whygpu explain --html why.html *.log   a page to look at, or to send
  whygpu explain notebook.ipynb          the output that a notebook holds
  whygpu explain 'No CUDA GPUs are available'  a message itself, in quotes
"""

EXIT_CODES = {
    "0": "nothing wrong",
    "1": "a cause found, or a failure that is not the GPU's",
    "2": "wrong usage, or a file that cannot be read",
    "4": "cannot tell",
}
UNREADABLE = 2
UNDECIDED = 4
_STATUS = re.compile(r"[A-Z]{3,20}(?:_[A-Z0-9]{1,20}){1,8}")
_FILE_ENDING = re.compile(r"\w\.[a-z]{2,5}\d?$")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="logs to read, or a message in quotes; none, or -, for standard input",
    )
    parser.add_argument(
        "--here",
        action="store_true",
        help="the log was written on this machine, in the active environment: let its facts "
        "confirm or refute what the log suggests",
    )
    parser.add_argument(
        "--python",
        metavar="PYTHON",
        help="with --here: the interpreter (or virtual environment) that wrote the log",
    )
    add_data_arguments(parser, "the answer")
    add_html_argument(parser)
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show all evidence, symptoms and noise"
    )
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    if options.python and not options.here:
        raise UsageError("--python says which environment wrote the log; it needs --here")
    from whygpu import api

    names = list(dict.fromkeys(options.files or ["-"]))
    if len(names) > 1 and not any(name == "-" or os.path.lexists(name) for name in names):
        message = shlex.quote(" ".join(names))
        raise UsageError(
            f"none of these files exists; a message needs quotes: whygpu explain {message}"
        )
    html_file = HtmlFile(options.html)
    here = None
    if options.here:
        here = api.snapshot(options.python, probe=False, try_instructions=True, to_post=False)
    codes: list[int] = []
    explanations: list[Explanation] = []
    for name in names:
        try:
            explanation = _explained(name, here)
        except UsageError as error:
            if len(names) == 1:
                raise
            # The other files may well be readable.
            output.say(str(error))
            codes.append(UNREADABLE)
            continue
        if not options.sarif:
            _show(explanation, options, several=len(names) > 1, first=not codes)
        if explanation.exit_code == UNDECIDED and name.endswith(".py"):
            output.say(f"{name} is a program; `whygpu lint {shlex.quote(name)}` reads programs")
        codes.append(explanation.exit_code)
        explanations.append(explanation)
    if options.sarif:
        _show_sarif(explanations)
    if len(names) == 1:
        html_file.write(explanations[0])
    else:
        html_file.write_several(f"What {len(explanations)} logs mean", explanations)
    return next((code for code in (UNREADABLE, 1, UNDECIDED) if code in codes), 0)


def _explained(name: str, here: Snapshot | None) -> Explanation:
    from whygpu import api
    from whygpu.cli.progress import reading

    if name.startswith(("http://", "https://")):
        raise UsageError(
            "explain loads nothing from the network; run `whygpu explain`, paste the text, and "
            "end it with Ctrl-D"
        )
    if _is_message(name):
        return api.explain(name, here=here)
    if name == "-" and sys.stdin.isatty():
        output.say("reading the log from the terminal; end it with Ctrl-D")
    with reading(name) as show:
        return api.explain_file(name, here=here, on_read=show)


def _is_message(name: str) -> bool:
    """Whether it is the message itself: words or a status that name no file."""
    looks_like_one = len(name.split()) > 1 and not _FILE_ENDING.search(name)
    return (looks_like_one or bool(_STATUS.fullmatch(name))) and not os.path.lexists(name)


def _show_sarif(explanations: list[Explanation]) -> None:
    """One document, because SARIF is one however many files it is about."""
    from whygpu import api
    from whygpu.render.finding_sarif import render_explanations
    from whygpu.version import VERSION

    findings = [finding for each in explanations for finding in each.root_causes]
    causes = api.causes_of(findings)
    as_sarif = partial(render_explanations, causes=causes, version=VERSION)
    output.data(tuple(explanations), as_sarif)


def _show(
    explanation: Explanation, options: argparse.Namespace, *, several: bool, first: bool
) -> None:
    if options.json:
        from whygpu.render.explain_json import render, render_line

        output.data(explanation, render_line if several else render)
        return
    from whygpu.render.explain_text import render as render_text

    def titled(shown: Explanation, **style: Any) -> str:
        text = render_text(shown, verbose=options.verbose, **style)
        title = f"== {shown.name or 'standard input'} ==\n" if several else ""
        return ("\n" if several and not first else "") + title + text

    output.page(explanation, titled, color=options.color)
