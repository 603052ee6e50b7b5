"""How whygpu's own process starts: isolated from what the user's variables and folders hold.

A module `typing` on PYTHONPATH, PYTHONWARNINGS=error or a package `json` in the current folder is
meant for the user's program, and must not decide whether whygpu works. So whygpu runs on `python
-I`, which ignores all PYTHON* variables, the current folder and the user site, and leaves the
variables in the environment for the programs that whygpu examines and runs. The command `whygpu`
(bin/whygpu) starts Python that way; `python -m whygpu` starts once more.

Besides modules of ours that import nothing, only what is built into Python is imported here at
first: anything else could be the user's.
"""

import sys

from whygpu.errors import exit_code_of_bug

EXIT_INTERRUPTED = 130

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main() -> int:
    """Run the command line. Whatever fails, also in our own imports, has its exit code."""
    try:
        from whygpu.cli.main import main as run

        return run()
    except SystemExit as stop:
        if type(stop) is SystemExit:
            # Ours are of a class of their own: this is one of a module that we use.
            return failed(stop, sys.argv[1:])
        raise
    except KeyboardInterrupt:
        # Before the command line could take care of it: as every program ends by Ctrl-C.
        return EXIT_INTERRUPTED
    except BaseException as error:
        return failed(error, sys.argv[1:])


def failed(error: BaseException, words: "Sequence[str]") -> int:
    """Report a bug on standard error; returns the exit code for it."""
    try:
        from whygpu.cli import bug

        return bug.failed(error, words)
    except BaseException:
        # Even the report needs modules and memory. Without standard error, the exit code is left.
        with _anything_suppressed():
            print(f"whygpu: this is a bug in whygpu: {type(error).__name__}", file=sys.stderr)
        return exit_code_of_bug(words)


class _anything_suppressed:  # noqa: N801
    """contextlib could be what fails to import."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> bool:
        return True


def isolate(main_file: str) -> None:
    """Replace this process by an isolated one that executes the file; returns if it cannot."""
    # On Windows, a program cannot replace itself: the shell would not wait for the second one.
    if sys.platform != "win32":
        from posix import execv

        options = ["-I", "-B"] if sys.dont_write_bytecode else ["-I"]
        try:
            execv(sys.executable, [sys.executable, *options, main_file, *sys.argv[1:]])
        except (OSError, TypeError, ValueError):
            # There is no executable: a Python inside another program.
            return
