"""Let an agent ask: the verbs as tools of the Model Context Protocol."""

from __future__ import annotations

import argparse
import sys

from whygpu.cli import output
from whygpu.cli.verb_help import DONE
from whygpu.errors import UsageError

EXAMPLES = """\
examples:
  whygpu mcp               for the settings of an agent: {"command": "whygpu",
                           "args": ["mcp"]}
  whygpu mcp --allow-fix   the agent may also apply what `fix` has proven

The server talks on standard input and output and ends with its input.
"""

EXIT_CODES = DONE


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-fix",
        action="store_true",
        help="let the agent change environments: `fix` may apply the steps that it has proven",
    )


def run(options: argparse.Namespace) -> int:
    if sys.stdin.isatty():
        output.say(
            "waiting for the requests of an agent, which starts this itself; end with Ctrl-C"
        )
    try:
        from whygpu.agent.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("whygpu"):
            raise
        raise UsageError(
            f"the server needs the module {error.name}: pip install 'whygpu[mcp]'"
        ) from error
    serve(may_change=options.allow_fix)
    return 0
