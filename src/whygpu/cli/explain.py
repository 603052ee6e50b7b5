"""What does this log mean? The root cause, the lines that prove it, the fix."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from whygpu.cli import output
from whygpu.cli.arguments import add_color_argument
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
  whygpu explain notebook.ipynb          the output that a notebook holds

exit codes:
  0 nothing wrong   1 a cause found, or a failure that is not the GPU's
  2 a file cannot be read   4 cannot tell
"""
PIECE = 1 << 18
_NULL = os.makedev(1, 3)
UNREADABLE = 2


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
    add_color_argument(parser)


def run(options: argparse.Namespace) -> int:
    if options.python and not options.here:
        raise UsageError("--python says which environment wrote the log; it goes with --here")
    names = list(dict.fromkeys(options.files or ["-"]))
    here = _this_machine(options.python) if options.here else None
    codes: list[int] = []
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
        _show(explanation, options, several=len(names) > 1, first=not codes)
        codes.append(explanation.exit_code)
    return next((code for code in (UNREADABLE, 1, 4) if code in codes), 0)


def _this_machine(python: str | None) -> Snapshot:
    from whygpu import api

    return api.snapshot(python, probe=False, try_instructions=True, to_post=False)


def _explained(name: str, here: Snapshot | None) -> Explanation:
    from whygpu import api

    if name == "-":
        if sys.stdin.isatty():
            output.say("reading the log from the terminal; end it with Ctrl-D")
        return api.explain_pieces(_pieces_of_input(), here=here)
    return api.explain_pieces(_pieces_of_file(name), name, here=here)


def _pieces_of_input() -> Iterator[bytes]:
    from whygpu.cli.progress import reading

    with reading("-", 0) as show:
        try:
            _refuse_endless("standard input", sys.stdin.fileno())
            # As it comes: a buffered read would wait until a piece is full.
            while piece := os.read(sys.stdin.fileno(), PIECE):
                show(len(piece))
                yield piece
        except OSError as error:
            raise UsageError(f"cannot read standard input: {error.strerror}") from error


def _pieces_of_file(name: str) -> Iterator[bytes]:
    from whygpu.cli.progress import reading

    try:
        with open(name, "rb", buffering=0) as file:
            _refuse_endless(name, file.fileno())
            size = os.fstat(file.fileno()).st_size
            with reading(name, size) as show:
                for piece in _first_bytes(file.read, size):
                    show(len(piece))
                    yield piece
    except IsADirectoryError:
        raise UsageError(f"{name} is a folder; name the logs in it: {name.rstrip('/')}/*") from None
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error


def _refuse_endless(name: str, descriptor: int) -> None:
    """Of the devices, a terminal and /dev/null are read; /dev/zero would never end."""
    facts = os.fstat(descriptor)
    if stat.S_ISCHR(facts.st_mode) and not os.isatty(descriptor) and facts.st_rdev != _NULL:
        raise UsageError(f"{name} is a device, not a log")


def _first_bytes(read: Callable[[int], bytes | None], size: int) -> Iterator[bytes]:
    """A file that grows while it is read ends where it ended when we came; pipes have no size."""
    left = size
    while piece := read(min(PIECE, left) if size else PIECE):
        yield piece
        left -= len(piece)
        if size and left <= 0:
            return


def _show(
    explanation: Explanation, options: argparse.Namespace, *, several: bool, first: bool
) -> None:
    if options.json:
        from whygpu.render.explain_json import render, render_line

        output.data(explanation, render_line if several else render)
        return
    from whygpu.render.explain_text import render as render_text
    from whygpu.render.marks import MARKS, PLAIN_MARKS

    def titled(shown: Explanation, **style: Any) -> str:
        text = render_text(shown, verbose=options.verbose, **style)
        title = f"== {shown.name or 'standard input'} ==\n" if several else ""
        return ("\n" if several and not first else "") + title + text

    output.page(explanation, titled, color=options.color, marks=(MARKS, PLAIN_MARKS))
