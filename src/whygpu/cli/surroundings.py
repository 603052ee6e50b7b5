"""What whoever started us may have left in disorder: standard streams and signals."""

from __future__ import annotations

import io
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

IMPATIENCE = 2.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def open_streams() -> None:
    """Give closed streams somewhere to go, and let no character stop an answer."""
    # In this order: the lowest free descriptor is the one that is missing. Left free, it would
    # become that of the next file we open, and our words would go into that file.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


FOLDER_IS_GONE = "the current folder does not exist any more; change to another one"


def folder_is_gone() -> bool:
    """Somebody has removed the folder that we were started in."""
    try:
        os.getcwd()
    except OSError:
        return True
    return False


@contextmanager
def stopped_cleanly() -> Iterator[None]:
    """Whatever tells us to stop, what we have started is ended first, and temporary files go."""
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    # One that is ignored stays so: that is what nohup is for.
    ours = [number for number, handler in handlers.items() if handler is not signal.SIG_IGN]
    told = float("-inf")

    def stop(number: int, frame: FrameType | None) -> None:
        # Ending takes a moment, and an impatient second Ctrl-C must not cut it short. A later one
        # counts: Python drops an exception that comes while it is clearing up an object.
        nonlocal told
        now = time.monotonic()
        if now - told < IMPATIENCE:
            return
        told = now
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)

    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, handlers[number])
