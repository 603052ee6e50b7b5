"""Serve an editor: what lint finds, while you type."""

from __future__ import annotations

import argparse
import os
import stat
import sys

from whygpu.cli import output
from whygpu.errors import UsageError

EXAMPLES = """\
examples:
  whygpu lsp      for the settings of an editor; it talks on standard input and
                  output and ends with its input
"""

EXIT_CODES = {"0": "done", "1": "the editor ended the server without asking it to shut down"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # Many editors give every language server this option.
    parser.add_argument(
        "--stdio",
        action="store_true",
        help="for editors that give this option; whygpu always uses standard input and output",
    )


def _is_pipe() -> bool:
    mode = os.fstat(sys.stdin.fileno()).st_mode
    return sys.platform == "win32" or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def run(options: argparse.Namespace) -> int:
    if sys.stdin.isatty():
        output.say("waiting for an editor, which starts this itself; end with Ctrl-C")
    elif not _is_pipe():
        raise UsageError("standard input must be a pipe; an editor starts this server")
    try:
        from whygpu.editor.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("whygpu"):
            raise
        raise UsageError(
            f"the server needs the module {error.name}: pip install 'whygpu[lsp]'"
        ) from error
    return serve()
