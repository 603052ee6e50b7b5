"""The entry point: words to options, verbs to their modules, every failure to an exit code.

Everything heavy is imported by the verb that needs it: `whygpu --help` is to cost little more
than starting Python.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from whygpu.cli import check, compare, explain, lint, memory, output, plan, rule, snapshot
from whygpu.cli import run as run_verb
from whygpu.cli.meant import Parser
from whygpu.cli.surroundings import (
    FOLDER_IS_GONE,
    folder_is_gone,
    open_streams,
    stopped_cleanly,
)
from whygpu.errors import UsageError
from whygpu.version import VERSION

EXIT_USAGE = 2
EXIT_BUG = 3
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141

VERBS = {
    "check": check,
    "compare": compare,
    "explain": explain,
    "lint": lint,
    "memory": memory,
    "plan": plan,
    "rule": rule,
    "run": run_verb,
    "snapshot": snapshot,
}

EPILOG = """\
examples:
  whygpu                              does each framework here use the GPU?
  whygpu --python ~/venv/bin/python   the same for another environment
  whygpu check --json | jq .verdict   for scripts
  whygpu snapshot -o machine.json     save what was seen, safe to post
  whygpu check --snapshot FILE        diagnose a machine from its snapshot
  whygpu explain train.log            what a log or traceback means
  whygpu plan tensorflow jax          which releases fit this machine
  whygpu run -- python train.py       run it, repaired, and prove where it ran
  whygpu compare model.keras          do CPU, GPU and others agree?
  whygpu lint train.py                which lines mishandle devices
  whygpu memory                       who holds GPU memory, what is left
  whygpu rule WG203                   what one code means

exit codes:
  0 nothing wrong   1 something found   2 wrong usage   3 a bug   4 cannot tell
"""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """argparse's own would import shutil, and with it three compression libraries."""

    def __init__(self, prog: str) -> None:
        try:
            columns = os.get_terminal_size().columns
        except OSError:
            columns = 80
        super().__init__(prog, width=min(columns, 100) - 2)


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="whygpu",
        description="Tells why a deep-learning program does or does not use its GPU.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"whygpu {VERSION}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for name, module in VERBS.items():
        summary = (module.__doc__ or "").partition("\n")[0]
        verb = verbs.add_parser(
            name,
            help=summary,
            description=summary,
            epilog=module.EXAMPLES,
            formatter_class=HelpFormatter,
        )
        module.add_arguments(verb)
    return top


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """`whygpu` alone, or with options only, is `whygpu check`."""
    words = list(arguments)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words.insert(0, "check")
    try:
        return parser().parse_args(words)
    except SystemExit as stop:
        if stop.code == EXIT_USAGE and words[0] == "run":
            # There, 2 would be the program's.
            raise SystemExit(run_verb.EXIT_FAILED) from None
        raise


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    open_streams()
    with stopped_cleanly():
        try:
            return _run(words)
        except Exception as error:
            # Telling of a failure has failed in turn. Python's own end would be exit code 1.
            output.say_own(f"whygpu: this is a bug in whygpu: {type(error).__name__}\n")
            return run_verb.EXIT_FAILED if list(words[:1]) == ["run"] else EXIT_BUG


def _run(words: Sequence[str]) -> int:
    try:
        options = parse(words)
        code: int = VERBS[options.verb].run(options)
        sys.stdout.flush()
        return code
    except UsageError as error:
        output.say(str(error))
        return EXIT_USAGE
    except KeyboardInterrupt:
        output.say_own("\nwhygpu: interrupted\n")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has gone: `whygpu | head`.
        output.discard(sys.stdout)
        return EXIT_PIPE_CLOSED
    except Exception as error:
        if isinstance(error, OSError) and folder_is_gone():
            output.say(FOLDER_IS_GONE)
            return EXIT_USAGE
        from whygpu.cli import bug

        bug.report(error, words)
        return EXIT_BUG


if __name__ == "__main__":
    sys.exit(main())
