"""What whoever started us may have left in disorder: standard streams and signals."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

IMPATIENCE = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending(SystemExit):
    """An end that whygpu has decided on. SystemExit itself may come from any module we use."""


def open_streams() -> None:
    """Give closed streams somewhere to go, and let no character stop an answer."""
    # In this order: the lowest free descriptor is the one that is missing. Left free, it would
    # become that of the next file we open, and our words would go into that file.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    encoding = _wanted_encoding(os.environ)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _wanted_encoding(environ: Mapping[str, str]) -> str | None:
    """The encoding that the user wants of Python programs; None for that of the locale.

    An isolated Python ignores the variables, and any other dies of an encoding that it has not got.
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
    """Somebody has removed the folder that we were started in."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False


_state = {"held": False}


def hold_stops() -> None:
    """From now on, what tells us to stop is not heeded.

    After a program has ended, the few words on it are worth more than the moment that they take.
    """
    _state["held"] = True


@contextmanager
def stops_heeded() -> Iterator[None]:
    """For what takes long, after hold_stops()."""
    _state["held"] = False
    try:
        yield
    finally:
        _state["held"] = True


@contextmanager
def stopped_cleanly(*, process_ends: bool = False) -> Iterator[None]:
    """Whatever tells us to stop, what we have started is ended first, and temporary files go.

    `process_ends`: nothing follows but Python's own end, whose exit code no signal is to replace.
    """
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    # One that is ignored stays so: that is what nohup is for.
    ours = [number for number, handler in handlers.items() if handler is not signal.SIG_IGN]
    told = float("-inf")

    def stop(number: int, frame: FrameType | None) -> None:
        # Ending takes a moment, and an impatient second Ctrl-C must not cut it short. A later one
        # counts: Python drops an exception that comes while it is clearing up an object.
        nonlocal told
        if _state["held"]:
            return
        now = time.monotonic()
        if now - told < IMPATIENCE:
            return
        told = now
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
    """Exceptions that ended threads of ours; the caller reports them."""
    import threading

    before = threading.excepthook
    failures: list[BaseException] = []

    def keep(told: threading.ExceptHookArgs) -> None:
        if told.exc_value is not None:
            failures.append(told.exc_value)

    threading.excepthook = keep
    try:
        yield failures
    finally:
        threading.excepthook = before
