"""What is going on, on standard error, while something takes long."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from whygpu.cli import output
from whygpu.cli.output import shows
from whygpu.model.derived import display_name

if TYPE_CHECKING:
    from whygpu.probes.runner import Progress, ProgressEvent

WORTH_SHOWING = 1 << 26
"""Bytes that take longer to read than a moment."""
PATIENCE = 0.5
"""Seconds after which a reader wants to see that something goes on."""


@contextmanager
def progress() -> Iterator[Progress | None]:
    """A callback for the probes' events; None where nobody is watching."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console

    console = Console(stderr=True)
    running: dict[str, str] = {}
    spinner = "dots" if shows("⠋", sys.stderr) else "line"
    with console.status("looking at this machine ...", spinner=spinner) as status:

        def show(event: ProgressEvent) -> None:
            if event.kind == "ended":
                running.pop(event.probe, None)
            else:
                running[event.probe] = event.text or "start"
            words = (f"{display_name(name)} ({stage})" for name, stage in running.items())
            status.update(_shown("running " + ", ".join(words)) if running else "judging ...")

        yield show


@contextmanager
def told(first: str, *, log: bool = True) -> Iterator[Callable[[str], None]]:
    """A callback for what goes on: one line that changes on a terminal, lines in a log.

    In a log, each thing is told once, without what follows a colon: nobody watches it.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        said: set[str] = set()

        def say(text: str) -> None:
            whole = text.partition(": ")[0]
            if log and whole not in said:
                said.add(whole)
                output.say(whole)

        yield say
        return
    from rich.console import Console

    spinner = "dots" if shows("⠋", sys.stderr) else "line"
    with Console(stderr=True).status(f"{first} ...", spinner=spinner) as status:
        yield lambda text: status.update(f"{_shown(text)} ...")


@contextmanager
def waiting(words: str) -> Iterator[Callable[[str], None]]:
    """A callback for what goes on behind these words, shown where somebody watches."""
    with told(words, log=False) as tell:
        yield lambda text: tell(f"{words}: {text}")


@contextmanager
def reading(name: str, size: int) -> Iterator[Callable[[int], None]]:
    """A callback for bytes read, which draws a bar for what takes longer than a moment."""
    if not sys.stderr.isatty() or (name != "-" and size < WORTH_SHOWING):
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("reading {task.description}"), BarColumn(), DownloadColumn())
    with Bar(*columns, TransferSpeedColumn(), console=Console(stderr=True), transient=True) as bar:
        shown = _shown(name) if name != "-" else "standard input"
        task = bar.add_task(shown, total=size or None)
        yield lambda count: bar.advance(task, count)


def counting() -> Callable[[int, int], None] | None:
    """A callback for how many files of how many are done; None where nobody is watching."""
    if not sys.stderr.isatty():
        return None
    import time

    began = shown = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if done == total:
            if shown > began:
                output.say_own("\r\033[K")
        elif now - began > PATIENCE and now - shown > 0.1:
            shown = now
            output.say_own(f"\r{done:,} of {total:,} files")

    return show


def _shown(text: str) -> str:
    """Redacted, on one line, and without a meaning for rich."""
    from rich.markup import escape

    return escape(output.name(output.plain(text)))
