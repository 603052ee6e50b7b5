"""What is going on, on standard error, while something takes long."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from whygpu.cli.terminal import shows
from whygpu.model.derived import display_name

if TYPE_CHECKING:
    from whygpu.probes.runner import Progress, ProgressEvent

WORTH_SHOWING = 1 << 26
"""Bytes that take longer to read than a moment."""


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
            status.update("running " + ", ".join(words) if running else "judging ...")

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
                print(f"whygpu: {whole}", file=sys.stderr, flush=True)

        yield say
        return
    from rich.console import Console
    from rich.markup import escape

    spinner = "dots" if shows("⠋", sys.stderr) else "line"
    with Console(stderr=True).status(f"{first} ...", spinner=spinner) as status:
        yield lambda text: status.update(f"{escape(text)} ...")


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
        task = bar.add_task(name if name != "-" else "standard input", total=size or None)
        yield lambda count: bar.advance(task, count)
