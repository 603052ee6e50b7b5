"""Repeats a Ctrl-C that the interpreter has lost.

KeyboardInterrupt is raised in the function of Python that the main thread enters next. If that is
a finalizer, or a function that the garbage collector calls, as JAX has one, nobody can catch it:
the interpreter prints "Exception ignored in" and the program trains on. That happens without
whygpu too. But sampling makes objects, and so moves the collections to where the program waits for
its device: there a Ctrl-C was lost ten times as often.
"""

import _thread
import signal
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_REPEATS = 20
"""A program may raise KeyboardInterrupt itself, each time that a finalizer runs."""


class LostInterrupt:
    """Does nothing before Python 3.8, which does not tell what it ignores."""

    def __init__(self) -> None:
        self._is_lost = False
        self._repeats = 0
        self._others: "Any" = getattr(sys, "unraisablehook", None)
        self._hook = self._notice
        if self._others is not None:
            sys.unraisablehook = self._hook

    def _notice(self, unraisable: "Any") -> None:
        of_main_thread = threading.get_ident() == threading.main_thread().ident
        try:
            self._others(unraisable)
        finally:
            # Last: what is repeated while this function runs is lost without another call of it.
            if issubclass(unraisable.exc_type, KeyboardInterrupt) and of_main_thread:
                self._is_lost = True

    def look(self, now: float) -> None:
        """Called in the sampler's thread. In the main one, the exception would be raised in the
        same place again."""
        if not self._is_lost or self._repeats >= MOST_REPEATS:
            return
        self._is_lost = False
        self._repeats += 1
        # Otherwise Ctrl-C does something else in this program, and has done it.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            _thread.interrupt_main()

    def restore(self) -> None:
        """Give the program its hook back, unless it has set another one."""
        if getattr(sys, "unraisablehook", None) == self._hook:
            sys.unraisablehook = self._others
