"""Standard input, line by line, in a way that can be cancelled.

The SDK reads it in a thread. A thread that waits for input cannot be stopped, so that Ctrl-C and
SIGTERM would have no effect until the agent sends its next request.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncIterator

import anyio

_PIECE = 1 << 16
LONGEST_LINE = 1 << 26
"""Bytes. A request with the longest text that a tool takes has less."""


def can_wait_for(descriptor: int) -> bool:
    """Whether the kernel reports when there is something to read; files are always readable.

    Windows reports it for sockets only.
    """
    if sys.platform == "win32":
        return False
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)


async def lines_of(descriptor: int) -> AsyncIterator[str]:
    rest = b""
    while True:
        await anyio.wait_readable(descriptor)
        piece = os.read(descriptor, _PIECE)
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
        if not piece:
            return
        # What is left of a longer one is no JSON, and the SDK answers that.
        rest = rest[:LONGEST_LINE]
