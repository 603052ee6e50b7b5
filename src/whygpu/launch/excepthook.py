"""whygpu.install(): an exception that ends a program is shown as usual, then explained."""

from __future__ import annotations

import builtins
import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

Explain = Callable[[BaseException], str]
"""What an exception means, as text; empty for one that is unrelated to the GPU."""

_installed: list[Explain] = []
_hooked: list[bool] = []
"""Not empty once the hooks are in place. They stay: others may have wrapped them since."""


def install(explain: Explain) -> None:
    """Explain uncaught exceptions: in the main program, in threads, and in cells of IPython."""
    if _installed:
        return
    _installed.append(explain)
    if not _hooked:
        _hooked.append(True)
        _hook_program()
        _hook_threads()
        _hook_ipython()


def stop() -> None:
    """From now on, explain nothing."""
    _installed.clear()


def _hook_program() -> None:
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        _show(error)

    sys.excepthook = hook


def _hook_threads() -> None:
    before = threading.excepthook

    def hook(arguments: threading.ExceptHookArgs) -> None:
        before(arguments)
        if arguments.exc_value is not None:
            _show(arguments.exc_value)

    threading.excepthook = hook


def _hook_ipython() -> None:
    shell = getattr(builtins, "get_ipython", lambda: None)()
    if shell is None:
        return

    def handler(
        shell: Any, kind: type, error: BaseException, trace: Any, tb_offset: int | None = None
    ) -> None:
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
        _show(error)

    shell.set_custom_exc((Exception,), handler)


def _show(error: BaseException) -> None:
    if not _installed or not isinstance(error, Exception) or sys.stderr is None:
        return
    try:
        text = _installed[0](error)
    except Exception as failure:
        text = f"whygpu could not explain it: {type(failure).__name__}: {failure}\n"
    if text:
        print(f"\n{text}", file=sys.stderr, end="", flush=True)
