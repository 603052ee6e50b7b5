"""The entry point: words to options, verbs to their modules, every failure to an exit code.

Everything heavy is imported by the verb that needs it, so that `whygpu --help` costs little more
than starting Python.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

from whygpu.cli.process_setup import (
    FOLDER_IS_GONE,
    Ending,
    folder_is_gone,
    open_streams,
    stopped_cleanly,
    watched_threads,
)
from whygpu.cli.suggestions import Parser
from whygpu.errors import EXIT_USAGE, UsageError, exit_code_of_usage
from whygpu.version import VERSION

TYPE_CHECKING = False  # importing typing for it would cost `whygpu --help` a tenth of its time
if TYPE_CHECKING:
    from typing import Any

EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141

SUMMARIES = {
    "check": "Does each framework use the GPU? If not: the root cause, the evidence, the fix.",
    "compare": "The same work on CPU, GPU and other lanes: the same results, and how fast?",
    "explain": "What does this log mean? The root cause, the lines that prove it, the fix.",
    "lint": "Which lines of my program mishandle devices?",
    "memory": "Who holds GPU memory, and what would a new process take?",
    "plan": "Which releases can use the GPU of this machine, or of one that options describe?",
    "rule": "The page of one cause: why it happens, what it looks like, how to fix it.",
    "run": "Run a program under a device policy, with repairs, and prove where it ran.",
    "snapshot": "Save what is seen of this machine and environment, private data removed.",
}
"""The first line of each verb's module: the modules themselves take too long to import for it."""


class Verbs(dict[str, "Any"]):
    """The modules of the verbs by their names, each imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        module = super().__getitem__(name)
        return import_module(f"whygpu.cli.{name}") if module is None else module


VERBS = Verbs((name, None) for name in SUMMARIES)

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


def parser(verb: str) -> argparse.ArgumentParser:
    """The whole parser, as far as the words after one verb need it."""
    top = Parser(
        prog="whygpu",
        description="Tells why a deep-learning program does or does not use its GPU.",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"whygpu {VERSION}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", title="verbs")
    for name in VERBS:
        summary = SUMMARIES.get(name) or VERBS[name].__doc__.partition("\n")[0]
        below = verbs.add_parser(
            name, help=summary, add_help=name == verb, formatter_class=HelpFormatter
        )
        if name == verb:
            module = VERBS[name]
            below.description, below.epilog = summary, module.EXAMPLES
            module.add_arguments(below)
    return top


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """`whygpu` alone, or with options only, is `whygpu check`."""
    words = list(arguments)
    if not words or (words[0].startswith("-") and words[0] not in ("-h", "--help", "--version")):
        words.insert(0, "check")
    try:
        return parser(words[0]).parse_args(words)
    except SystemExit as stop:
        code = exit_code_of_usage(words) if stop.code == EXIT_USAGE else stop.code
        raise Ending(code) from None


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    open_streams()
    with stopped_cleanly(process_ends=arguments is None):
        try:
            return _run(words)
        except Exception as error:
            # Reporting a failure has failed too. Python itself would exit with code 1.
            return _failed(error, words)


def _output() -> Any:
    """Imported when there is something to say: `whygpu --help` does not need it."""
    return import_module("whygpu.cli.output")


def _failed(error: BaseException, words: Sequence[str]) -> int:
    code: int = import_module("whygpu.cli.bug").failed(error, words)
    return code


def _processes_ended(verb: str) -> AbstractContextManager[None]:
    """No process that a verb starts outlives it, except those of a program under `run`."""
    if verb == "run":
        return nullcontext()
    from whygpu.host.orphans import no_survivors

    return no_survivors()


def _run(words: Sequence[str]) -> int:
    try:
        options = parse(words)
        with watched_threads() as failures, _processes_ended(options.verb):
            code: int = VERBS[options.verb].run(options)
        sys.stdout.flush()
        if failures:
            # The answer lacks what the thread should have found out. A program under `run` keeps
            # its own exit code.
            bug_code = _failed(failures[0], words)
            return code if options.verb == "run" else bug_code
        return code
    except UsageError as error:
        from whygpu.cli.option_words import message

        _output().say_error(message(error, words), words)
        return exit_code_of_usage(words)
    except KeyboardInterrupt:
        _output().say_own("\nwhygpu: interrupted\n")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader has closed the pipe: `whygpu | head`.
        _output().discard(sys.stdout)
        return EXIT_PIPE_CLOSED
    except Ending:
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, OSError) and folder_is_gone():
            _output().say(FOLDER_IS_GONE)
            return exit_code_of_usage(words)
        return _failed(error, words)


if __name__ == "__main__":
    sys.exit(main())
