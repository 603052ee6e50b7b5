"""Shows progress on standard error while something takes long."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from whygpu.cli import output
from whygpu.model.derived import display_name

if TYPE_CHECKING:
    from whygpu.probes.runner import Progress, ProgressEvent

WORTH_SHOWING = 1 << 26
"""Bytes: a file of this size takes a noticeable time to read."""
PATIENCE = 0.5
"""Seconds after which a user wants to see progress."""
FIRST_LINE = 10.0
"""Seconds after which the first line goes into a pipe. Most commands end before."""
NEXT_LINE = 60.0


class _StatusLine:
    """One line on a terminal that is replaced by the next, with the seconds that have passed."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._ticks = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Callable[[str], None]:
        self._write()
        self._ticks.start()
        return self.show

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._ticks.join()
        self._clear()

    def _clear(self) -> None:
        output.say_own("\r\033[K")

    def show(self, text: str) -> None:
        self._text = output.name(output.plain(text))
        self._write()

    def _tick(self) -> None:
        while not self._ended.wait(1.0):
            self._write()

    def _write(self) -> None:
        passed = int(time.monotonic() - self._began)
        clock = f" ({passed} s)" if passed else ""
        # The clock is what shows that the work goes on, so a long text is cut before it.
        text = self._text[: output.width(sys.stderr) - 1 - len(clock)]
        output.say_own(f"\r\033[K{text}{clock}")


class _SparseLines(_StatusLine):
    """For a pipe, such as the log of a job: the current step, from time to time."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._due = FIRST_LINE

    def _clear(self) -> None:
        pass

    def _write(self) -> None:
        passed = time.monotonic() - self._began
        if passed >= self._due:
            self._due = passed + NEXT_LINE
            output.say(f"{self._text} ({passed:.0f} s)")


@contextmanager
def progress(first: str = "looking at this machine ...") -> Iterator[Progress | None]:
    """A callback for the probes' events, with words for the time before the first of them; None if
    stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    running: dict[str, str] = {}
    with _StatusLine(first) as show:

        def on_event(event: ProgressEvent) -> None:
            if event.kind == "ended":
                running.pop(event.probe, None)
            else:
                running[event.probe] = event.text or "start"
            words = (f"{display_name(name)} ({stage})" for name, stage in running.items())
            show("running " + ", ".join(words) if running else "judging ...")

        yield on_event


@contextmanager
def showing(first: str, *, steps: bool = True) -> Iterator[Callable[[str], None]]:
    """A callback for the current step: one line that changes on a terminal. A pipe gets a line only
    if it takes long, and then one a minute.

    A terminal that cannot replace a line gets each step once, without the details after a colon.
    """
    if not sys.stderr.isatty():
        with _SparseLines(f"{first} ...") as show:
            yield lambda text: show(f"{text} ...")
        return
    if os.environ.get("TERM") == "dumb":
        shown: set[str] = set()

        def say(text: str) -> None:
            whole = text.partition(": ")[0]
            if steps and whole not in shown:
                shown.add(whole)
                output.say(whole)

        yield say
        return
    with _StatusLine(f"{first} ...") as show:
        yield lambda text: show(f"{text} ...")


@contextmanager
def waiting(words: str) -> Iterator[Callable[[str], None]]:
    """A callback for the details of one step, which are shown only on a terminal."""
    with showing(words, steps=False) as show:
        yield lambda text: show(f"{words}: {text}")


@contextmanager
def reading(name: str) -> Iterator[Callable[[int, int], None]]:
    """A callback for bytes read and the size, which counts them for what takes long to read."""
    if not sys.stderr.isatty():
        yield lambda done, size: None
        return
    subject = "standard input" if name == "-" else name
    with ExitStack() as stack:
        lines: list[Callable[[str], None]] = []
        shown = 0

        def show(done: int, size: int) -> None:
            nonlocal shown
            if not lines and (name == "-" or size >= WORTH_SHOWING):
                opening = f"reading {output.name(output.plain(subject))} ..."
                lines.append(stack.enter_context(_StatusLine(opening)))
            if lines and done // WORTH_SHOWING > shown:
                shown = done // WORTH_SHOWING
                whole = f" of {size >> 20:,}" if size else ""
                lines[0](f"reading {subject}: {done >> 20:,}{whole} MiB")

        yield show


def counting() -> Callable[[int, int], None] | None:
    """A callback for the files done and the total; None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        return None
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
