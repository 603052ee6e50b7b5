"""Repairs what the parent process may have left broken: standard streams and signals."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from whygpu.host.systems import STOP_SIGNALS

IMPATIENCE = 2.0


class Ending(SystemExit):
    """An exit that whygpu has decided on. SystemExit itself may come from any module we use."""


def open_streams() -> None:
    """Replace closed streams, and let no character that cannot be encoded stop an answer."""
    # In this order: the lowest free descriptor is the missing one. If it stayed free, the next file
    # that we open would get it, and our output would go into that file.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    encoding = _wanted_encoding(os.environ)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _wanted_encoding(environ: Mapping[str, str]) -> str | None:
    """The encoding that the user wants of Python programs; None for that of the locale.

    An isolated Python ignores these variables; any other exits if it does not know the encoding.
    """
    name = environ.get("PYTHONIOENCODING", "").partition(":")[0]
    if not name:
        return "utf-8" if environ.get("PYTHONUTF8") == "1" else None
    try:
        "".encode(name)
    except LookupError:
        return None
    return name


FOLDER_IS_GONE = "the current folder does not exist any more; change to another one"


def folder_is_gone() -> bool:
    """Whether the folder that we were started in has been removed."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False


_state = {"held": False}


def hold_stops() -> None:
    """From now on, ignore signals that ask us to stop.

    After a program has ended, its summary is worth the moment that it takes.
    """
    _state["held"] = True


@contextmanager
def stops_allowed() -> Iterator[None]:
    """React to these signals again, for something that takes long."""
    _state["held"] = False
    try:
        yield
    finally:
        _state["held"] = True


@contextmanager
def stopped_cleanly(*, process_ends: bool = False) -> Iterator[None]:
    """On a signal to stop, first end the processes that we started and remove temporary files.

    `process_ends`: only Python's own shutdown follows, and no signal may replace its exit code.
    """
    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    # A signal that is ignored stays ignored: nohup relies on that.
    ours = [number for number, handler in handlers.items() if handler is not signal.SIG_IGN]
    last = float("-inf")

    def stop(number: int, frame: FrameType | None) -> None:
        # Stopping takes a moment, and an impatient second Ctrl-C must not cut it short. A later one
        # counts, because Python drops an exception that is raised while it finalizes an object.
        nonlocal last
        if _state["held"]:
            return
        now = time.monotonic()
        if now - last < IMPATIENCE:
            return
        last = now
        raise KeyboardInterrupt if number == signal.SIGINT else Ending(128 + number)

    _state["held"] = False
    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_IGN if process_ends else handlers[number])


@contextmanager
def watched_threads() -> Iterator[list[BaseException]]:
    """Collect exceptions that ended our threads; the caller reports them."""
    import threading

    before = threading.excepthook
    failures: list[BaseException] = []

    def keep(hook_args: threading.ExceptHookArgs) -> None:
        if hook_args.exc_value is not None:
            failures.append(hook_args.exc_value)

    threading.excepthook = keep
    try:
        yield failures
    finally:
        threading.excepthook = before
