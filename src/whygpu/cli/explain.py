"""What does a log or traceback mean? Its root cause, the proof, the fix."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from whygpu.errors import UsageError

if TYPE_CHECKING:
    from whygpu.model.explanation import Explanation
    from whygpu.model.snapshot import Snapshot

EXAMPLES = """\
examples:
  whygpu explain train.log             a log from any machine, of any year
  python train.py 2>&1 | whygpu explain
  whygpu explain --here train.log      it was written here: compare with the facts
  whygpu explain --json *.log          one JSON object for each file
"""
PIECE = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="*", help="logs to read; none, or -, for standard input"
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
    parser.add_argument("--json", action="store_true", help="print the answer as JSON")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show all evidence, symptoms and noise"
    )
    parser.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour: on a terminal (default), always, or never; NO_COLOR is honoured",
    )


def run(options: argparse.Namespace) -> int:
    from whygpu.cli.terminal import write

    if options.python and not options.here:
        raise UsageError("--python says which environment wrote the log; it goes with --here")
    here = _this_machine(options.python) if options.here else None
    codes: list[int] = []
    names = options.files or ["-"]
    for index, name in enumerate(names):
        explanation = _explained(name, here)
        write(_rendered(explanation, options, several=len(names) > 1, first=index == 0))
        codes.append(explanation.exit_code)
    return 1 if 1 in codes else max(codes)


def _this_machine(python: str | None) -> Snapshot:
    from whygpu import api

    return api.snapshot(python, probe=False)


def _explained(name: str, here: Snapshot | None) -> Explanation:
    from whygpu import api

    if name == "-" and sys.stdin.isatty():
        print("whygpu: reading the log from the terminal; end it with Ctrl-D", file=sys.stderr)
    return api.explain_pieces(_pieces(name), "" if name == "-" else name, here=here)


def _pieces(name: str) -> Iterator[bytes]:
    from whygpu.cli.progress import reading

    try:
        file = sys.stdin.buffer if name == "-" else open(name, "rb", buffering=0)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error
    with file:
        # A file that grows while it is read ends where it ended when we came.
        size = os.fstat(file.fileno()).st_size if name != "-" else 0
        left = size or None
        with reading(name, size) as show:
            while left is None or left > 0:
                try:
                    piece = file.read(PIECE if left is None else min(PIECE, left))
                except OSError as error:
                    raise UsageError(f"cannot read {name}: {error.strerror}") from error
                if not piece:
                    return
                if left is not None:
                    left -= len(piece)
                show(len(piece))
                yield piece


def _rendered(
    explanation: Explanation, options: argparse.Namespace, *, several: bool, first: bool
) -> str:
    if options.json:
        from whygpu.render.explain_json import render, render_line

        return render_line(explanation) if several else render(explanation)
    from whygpu.cli.terminal import shows, use_color, width
    from whygpu.render.explain import MARKS, PLAIN_MARKS
    from whygpu.render.explain import render as render_text

    text = render_text(
        explanation,
        width=width(),
        color=use_color(options.color),
        verbose=options.verbose,
        marks=MARKS if shows("".join(MARKS.values()), sys.stdout) else PLAIN_MARKS,
    )
    if not several:
        return text
    return ("" if first else "\n") + f"== {explanation.name or 'standard input'} ==\n{text}"
