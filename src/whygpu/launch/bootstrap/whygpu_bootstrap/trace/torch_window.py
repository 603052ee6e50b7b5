"""Turns the watching of PyTorch's operations on and off in the main thread.

Watching costs several microseconds per operation, so it is done in samples, with pauses between.
The mode is pushed only on an empty stack and popped only from the top, because modes of the program
come and go in their own order. While an operation runs in the mode, PyTorch has popped the mode and
pushes it back afterwards. So it is popped at the first return to the program after that, which a
profile function sees. After the pause, a thread asks the interpreter to push it in the main thread,
as for signal handlers.
"""

import ctypes
import sys
import threading
import time

from whygpu_bootstrap import process_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

REST_SECONDS = 1.0
RETRY_SECONDS = 0.002

_callback_type = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)


class Window:
    """Pushes and pops the mode on the stack of the main thread."""

    def __init__(self, torch: "Any", mode: "Any") -> None:
        self._stack = torch._C
        self._mode = mode
        self._call = _callback_type(self._in_main_thread)
        self._changed = threading.Event()
        self.inside = 0
        self._on = True
        self._tended = False
        self.main = threading.main_thread().ident

    def after_fork(self) -> None:
        """A child has the thread that forked, and no other."""
        self.main = threading.main_thread().ident
        self._changed = threading.Event()
        self._tended = False
        if not self._on:
            self._tend()

    def open(self) -> None:
        """Called at the start. Outside of the main thread, it waits for the main thread."""
        if threading.get_ident() == self.main:
            self._switch()
        else:
            self._on = False
            self._tend()

    def close(self) -> None:
        """Called by the mode, within an operation in the main thread, when it has seen enough."""
        self._on = False
        if sys.getprofile() is None:
            sys.setprofile(self._at_return)
        if not self._tended:
            self._tend()

    def _at_return(self, frame: "Any", event: str, argument: "Any") -> None:
        # The mode itself returns before PyTorch pushes it back.
        if event != "call" and not self.inside and frame.f_code is not self._mode.code:
            sys.setprofile(None)
            with process_record.noted("pausing the trace of PyTorch"):
                self._switch()

    def _tend(self) -> None:
        self._tended = True
        # A thread that is not listed in threading.enumerate().
        threading._start_new_thread(self._alternate, ())  # type: ignore[attr-defined]

    def _alternate(self) -> None:
        while True:
            self._until_changed()
            time.sleep(REST_SECONDS)
            self._on = True
            self._until_changed()
            while self._on:
                time.sleep(REST_SECONDS / 10)

    def _until_changed(self) -> None:
        """The profile function is faster; this also works if the program has one of its own."""
        self._changed.clear()
        while not self._changed.wait(RETRY_SECONDS):
            ctypes.pythonapi.Py_AddPendingCall(self._call, None)

    def _in_main_thread(self, _: "Any") -> int:
        try:
            self._switch()
        except BaseException as error:
            # A signal handler has raised an exception here, where nobody would see it.
            kind = ctypes.py_object(type(error))
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.main or 0), kind)
        return 0

    def _switch(self) -> None:
        """Push or pop the mode as wanted, if that is possible now."""
        if self.inside:
            return
        stack = self._stack
        depth = stack._len_torch_dispatch_stack()
        ours = [stack._get_dispatch_stack_at(i) is self._mode for i in range(depth)]
        if self._on and depth == 0:
            stack._push_on_torch_dispatch_stack(self._mode)
            self._mode.opened()
            self._changed.set()
        elif not self._on and ours and ours[-1]:
            stack._pop_torch_dispatch_stack(None)
            self._mode.closed()
            self._changed.set()
        elif any(ours) == self._on:
            self._changed.set()
