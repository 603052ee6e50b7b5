"""The entry point: words to options, verbs to their modules, every failure to an exit code.

Everything heavy is imported by the verb that needs it, so that `whygpu --help` costs little more
than starting Python.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module

from whygpu.cli.help_page import help_page
from whygpu.cli.process_setup import (
    FOLDER_IS_GONE,
    Ending,
    folder_is_gone,
    open_streams,
    stopped_cleanly,
    watched_threads,
)
from whygpu.errors import UsageError, exit_code_of_usage

TYPE_CHECKING = False  # importing typing for it would cost `whygpu --help` a tenth of its time
if TYPE_CHECKING:
    from typing import Any

EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141


def main(arguments: Sequence[str] | None = None) -> int:
    words = _asked_as_option(sys.argv[1:] if arguments is None else arguments)
    open_streams()
    with stopped_cleanly(process_ends=arguments is None):
        try:
            return _run(words)
        except Exception as error:
            # Reporting a failure has failed too. Python itself would exit with code 1.
            return _failed(error, words)


def _asked_as_option(words: Sequence[str]) -> Sequence[str]:
    """`whygpu help check` is `whygpu check --help`."""
    return [*words[1:], "--help"] if list(words[:1]) == ["help"] else words


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
        if words and words[0] in ("-h", "--help"):
            _output().own(help_page())
            return 0
        from whygpu.cli.parser import VERBS, parse

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
