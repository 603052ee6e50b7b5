"""Collects what a short command prints on its two streams, up to a limit."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO

from whygpu.host import limits

_PIECE = 1 << 16


def output_of(process: subprocess.Popen[bytes]) -> CommandOutput:
    """For a process whose standard output and standard error are pipes."""
    return _ReadByThreads(process) if sys.platform == "win32" else _ReadWhenReady(process)


class CommandOutput:
    """The output of a process so far. Closing it closes the streams."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._streams: tuple[IO[bytes], IO[bytes]] = (process.stdout, process.stderr)
        self._content = (bytearray(), bytearray())

    def __enter__(self) -> CommandOutput:
        return self

    def __exit__(self, *exception: object) -> None:
        for stream in self._streams:
            stream.close()

    @property
    def ended(self) -> bool:
        """Whether every writer has closed both streams."""
        raise NotImplementedError

    def read(self, seconds: float) -> None:
        """Wait for output, at most this long."""
        raise NotImplementedError

    @property
    def is_too_long(self) -> bool:
        return any(len(content) > limits.COMMAND_OUTPUT for content in self._content)

    @property
    def stdout(self) -> str:
        return _text(self._content[0])

    @property
    def stderr(self) -> str:
        return _text(self._content[1])


class _ReadWhenReady(CommandOutput):
    """Asks the system which stream has something to read."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        import selectors

        super().__init__(process)
        self._selector = selectors.DefaultSelector()
        for stream, content in zip(self._streams, self._content, strict=True):
            self._selector.register(stream, selectors.EVENT_READ, content)

    def __exit__(self, *exception: object) -> None:
        self._selector.close()
        super().__exit__(*exception)

    @property
    def ended(self) -> bool:
        return not self._selector.get_map()

    def read(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            piece = os.read(key.fd, _PIECE)
            key.data.extend(piece)
            if not piece:
                self._selector.unregister(key.fileobj)


class _ReadByThreads(CommandOutput):
    """A thread for each stream, because Windows cannot wait for several pipes at once."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        import threading

        super().__init__(process)
        self._news = threading.Event()
        self._readers = [
            threading.Thread(target=self._take, args=parts, daemon=True)
            for parts in zip(self._streams, self._content, strict=True)
        ]
        for reader in self._readers:
            reader.start()

    def _take(self, stream: IO[bytes], content: bytearray) -> None:
        while len(content) <= limits.COMMAND_OUTPUT:
            piece = os.read(stream.fileno(), _PIECE)
            if not piece:
                break
            content.extend(piece)
            self._news.set()
        self._news.set()

    def __exit__(self, *exception: object) -> None:
        for stream, reader in zip(self._streams, self._readers, strict=True):
            # A descendant of the process may hold the other end. The thread ends with whygpu.
            if not reader.is_alive():
                stream.close()

    @property
    def ended(self) -> bool:
        return not any(reader.is_alive() for reader in self._readers)

    def read(self, seconds: float) -> None:
        self._news.wait(seconds)
        self._news.clear()


def _text(output: bytearray) -> str:
    return output[: limits.COMMAND_OUTPUT].decode("utf-8", "replace")
