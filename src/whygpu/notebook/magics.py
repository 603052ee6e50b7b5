"""`%load_ext whygpu`: the verbs as `%whygpu check`, and cells as `%%whygpu run`."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from whygpu.errors import PolicyError, UsageError

_WITH_PYTHON = ("check", "compare", "fix", "memory", "plan", "report", "snapshot")
"""Verbs that examine an environment: in a notebook, that of its kernel."""
_OTHER_MACHINE = ("--python", "--snapshot", "-h", "--help")
"""Words after which the environment of the kernel is not meant."""
_OF_CELLS = ("run", "explain", "lint")
_SERVERS = ("lsp", "mcp")
"""Verbs that speak with a program on standard input and output."""


def register(shell: Any) -> None:
    shell.register_magic_function(magic, "line_cell", "whygpu")


def unregister(shell: Any) -> None:
    """Take the magics back, and let exceptions be as they are."""
    from whygpu.launch import excepthook

    excepthook.stop()
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("whygpu", None)


def magic(line: str, cell: str | None = None) -> None:
    """Why does this notebook use, or not use, the GPU?

    %whygpu check                 any verb, as on the command line, about this kernel's Python
    %%whygpu run --device gpu:0   runs the cell as a program of its own and reports where it ran
    %%whygpu explain              what the log in the cell means
    %%whygpu lint                 which lines of the cell mishandle devices
    """
    words = _split(line)
    try:
        if cell is not None:
            _cell(words, cell)
        elif words[:1] == ["run"]:
            _run(words)
        else:
            _verb(words)
    except (UsageError, PolicyError) as error:
        from whygpu.cli import output
        from whygpu.cli.option_words import message

        output.say(message(error, words))


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        # A quotation mark without its partner is a letter, as in `don't`.
        return line.split()


def _verb(words: Sequence[str]) -> None:
    """The command line in this process; what it would print for people is shown as HTML."""
    from whygpu.cli import output
    from whygpu.cli.main import main
    from whygpu.cli.process_setup import Ending
    from whygpu.notebook.display import show

    with output.shown_by(show):
        try:
            main(_about_this_kernel(words))
        except Ending:
            # After --help, and after words that no verb takes, which the parser has explained.
            return


def _about_this_kernel(words: Sequence[str]) -> list[str]:
    """The python on PATH is often another one than the kernel's."""
    verb = next((word for word in words if not word.startswith("-")), "check")
    if verb in _SERVERS:
        raise UsageError(f"{verb} talks to another program; start it in a terminal: whygpu {verb}")
    if verb == "explain" and len(words) == 1:
        raise UsageError("give the file of a log, or put the log in a cell: %%whygpu explain")
    named = any(word.partition("=")[0] in _OTHER_MACHINE for word in words)
    examined = verb in _WITH_PYTHON or (verb == "explain" and "--here" in words)
    return [*words, "--python", sys.executable] if examined and not named else list(words)


def _cell(words: Sequence[str], cell: str) -> None:
    verb, *options = words or ["run"]
    if verb == "run":
        if "--" in options:
            raise UsageError("%%whygpu run runs the cell; for another program: %whygpu run -- ...")
        with _as_program(cell) as path:
            _run(["run", *options, "--", sys.executable, path])
    elif verb == "explain":
        from whygpu.api.logs import explain_text
        from whygpu.notebook.display import show

        show(explain_text(cell))
    elif verb == "lint":
        with _as_program(cell) as path:
            _verb(["lint", *options, path])
    else:
        raise UsageError(f"a cell can be given to {', '.join(_OF_CELLS)}, not to {verb}")


@contextmanager
def _as_program(cell: str) -> Iterator[str]:
    """The cell as a file. A program in it finds the modules in the notebook's folder."""
    import tempfile

    before = os.environ.get("PYTHONPATH")
    with tempfile.TemporaryDirectory(prefix="whygpu-cell-") as folder:
        path = os.path.join(folder, "cell.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(cell)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.getcwd(), before)))
        try:
            yield path
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before


def _run(words: Sequence[str]) -> None:
    """Not through the verb itself: it ends its process as the program has ended."""
    from whygpu import api
    from whygpu.cli.parser import parse
    from whygpu.cli.process_setup import Ending
    from whygpu.cli.run import command_words, policy_of
    from whygpu.notebook.display import show

    try:
        options = parse(list(words))
    except Ending:
        return
    argv = command_words(options)
    if options.dry_run:
        show(api.plan_run(argv, policy_of(options), repair=options.repair).plan)
        return
    sys.stdout.flush()
    show(api.run(argv, policy_of(options), repair=options.repair, trace=options.trace))
