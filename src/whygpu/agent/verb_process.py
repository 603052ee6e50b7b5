"""Runs one verb in a process of its own, which a cancelled request and a time limit end.

The server only passes answers on. Whatever a verb does (wait for a driver that hangs, run a
framework that crashes, print) happens in the other process, and cannot stop the server or get
between the messages of the protocol. The process is the command line itself, so its answers are
redacted, and it ends the processes that it starts.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import anyio
from anyio.abc import ByteReceiveStream, Process

from whygpu.host.orphans import kill_all
from whygpu.host.own_process import verb_command
from whygpu.host.processes import descendants

LARGEST_ANSWER = 1 << 25
"""Bytes. The longest answer, `lint` on a folder of thousands of findings, has a few MiB."""
AT_THE_SAME_TIME = 2
"""Verbs. More wait: a check runs every framework, which takes gigabytes of memory."""
_GRACE = 5.0
"""Seconds for a verb to end its own processes after SIGTERM."""


class VerbEnd(NamedTuple):
    exit_code: int
    output: bytes
    message: str
    """What it wrote to standard error."""


class TooLate(Exception):
    """The verb was stopped at its time limit."""


class TooLong(Exception):
    """The verb printed more than any answer has."""


class VerbRunner:
    """Runs verbs, a few at a time."""

    def __init__(self) -> None:
        self._turn = anyio.Semaphore(AT_THE_SAME_TIME)

    async def run(self, words: Sequence[str], given: bytes, *, limit: float) -> VerbEnd:
        """Run `whygpu` with these words and `given` as its standard input, for `limit` seconds."""
        async with self._turn:
            process = await anyio.open_process(
                verb_command(words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={name: value for name, value in os.environ.items() if name != "COLUMNS"},
                start_new_session=True,
            )
            try:
                with anyio.fail_after(limit):
                    return await _talk(process, given)
            except TimeoutError:
                raise TooLate from None
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)


async def _talk(process: Process, given: bytes) -> VerbEnd:
    assert process.stdin
    assert process.stdout
    assert process.stderr
    stdin, output, message = process.stdin, bytearray(), bytearray()

    async def give() -> None:
        # A verb that refuses its words does not read its input.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await stdin.send(given)
        await stdin.aclose()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(give)
        tasks.start_soon(_take, process.stdout, output, tasks.cancel_scope)
        tasks.start_soon(_take, process.stderr, message, tasks.cancel_scope)
    if max(len(output), len(message)) > LARGEST_ANSWER:
        raise TooLong
    code = await process.wait()
    return VerbEnd(code, bytes(output), message.decode("utf-8", "replace"))


async def _take(stream: ByteReceiveStream, into: bytearray, whole: anyio.CancelScope) -> None:
    async for piece in stream:
        into += piece
        if len(into) > LARGEST_ANSWER:
            whole.cancel()


async def _end(process: Process) -> None:
    """Ask the process to end, which ends its own processes first; then insist."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        with anyio.move_on_after(_GRACE):
            await process.wait()
    if process.returncode is None:
        kill_all((*descendants(process.pid), process.pid))
        await process.wait()
    await process.aclose()
