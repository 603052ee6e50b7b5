"""Writes files for the user: a file is replaced completely, or not at all.

New content goes to a temporary file in the same folder. That file gets the mode, the owner (if
allowed) and the extended attributes of the old file, is flushed to the disk, and is then renamed
over the old file. If anything fails before the rename, the old file stays as it was and the
temporary file is removed. Signals with a Python handler are delayed until the file is complete or
removed.

- A symbolic link stays a link; its target is replaced. A second hard link keeps the old content.
- A device or a FIFO cannot be replaced and is written to directly. So are the process's own
  descriptors (`/dev/stdout`, `/dev/fd/63`), even if they refer to an ordinary file, because the
  file may contain what another program wrote to it before.
- A file without write permission is refused, although a rename would succeed.
- The folder must be writable, because it contains the temporary file.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from whygpu.host.systems import NOT_THROUGH_LINKS, READ, STOP_SIGNALS, WRITE

TEMPORARY = ".whygpu-"
"""The prefix of temporary files. Their names do not end in .py, so that linters ignore them."""

_OWN_DESCRIPTOR = re.compile(r"/dev/(?:(stdout)|(stderr)|fd/(\d+))|/proc/self/fd/(\d+)")
_MOST_LINKS = 40
_NOT_FOR_FSYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
"""Errors of file systems that do not support flushing."""


class FileChanged(OSError):
    """Somebody else has changed the file since it was read."""


def write_file(path: str, content: bytes, *, mode: int = 0o666) -> None:
    """Replace the content of the file. `mode` is for a new file, and the umask applies to it."""
    _write(_destination(path), content, mode, None)


def edit_file(path: str, before: bytes, after: bytes) -> None:
    """Replace the content that was read, or raise FileChanged if it is no longer the content."""
    _write(_destination(path), after, 0o600, before)


def check_writable(path: str) -> None:
    """Raise the OSError with which writing there would certainly fail.

    For work that takes hours, so that it does not end with "permission denied".
    """
    place = _destination(path)
    if isinstance(place, int):
        os.fstat(place)
        return
    old = _status(place)
    if old is None or stat.S_ISREG(old.st_mode):
        folder = os.path.dirname(place)
        os.stat(folder)
        _require_permission(folder, os.W_OK | os.X_OK)
    if old is not None:
        _require_permission(place, os.W_OK)


def _destination(path: str) -> int | str:
    """One of this process's descriptors, or the path after following all links."""
    if not path:
        raise _os_error(errno.ENOENT, path)
    if path.endswith(("/", os.sep)):
        raise _os_error(errno.EISDIR, path)
    given = path
    for _ in range(_MOST_LINKS):
        own = _OWN_DESCRIPTOR.fullmatch(path)
        if own is not None:
            return 1 if own[1] else 2 if own[2] else int(own[3] or own[4])
        try:
            leads_to = os.readlink(path)
        except OSError:
            return os.path.realpath(path)
        path = os.path.join(os.path.dirname(path), leads_to)
    raise _os_error(errno.ELOOP, given)


def _write(place: int | str, content: bytes, mode: int, before: bytes | None) -> None:
    if isinstance(place, int):
        _write_through(os.dup(place), content)
        return
    old = _status(place)
    if old is not None:
        _require_permission(place, os.W_OK)
        if not stat.S_ISREG(old.st_mode):
            _write_through(os.open(place, WRITE), content)
            return
    _replace(place, content, mode, old, before)


def _status(path: str) -> os.stat_result | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise _os_error(errno.EISDIR, path)
    return found


def _require_permission(path: str, wanted: int) -> None:
    if not os.access(path, wanted):
        raise _os_error(errno.EACCES, path)


def _os_error(number: int, path: str) -> OSError:
    """The subclass of OSError that belongs to the number, as the operating system raises it."""
    return OSError(number, os.strerror(number), path)


def _write_through(descriptor: int, content: bytes) -> None:
    try:
        _write_all(descriptor, content)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def _replace(
    path: str, content: bytes, mode: int, old: os.stat_result | None, before: bytes | None
) -> None:
    folder = os.path.dirname(path)
    # The name is known before the file is created, so that it can be removed in any case.
    temporary = os.path.join(folder, f"{TEMPORARY}{os.urandom(8).hex()}.tmp")
    with _uninterrupted():
        try:
            _write_new(temporary, content, mode, old, path)
            if before is not None and _content(path, len(before) + 1) != before:
                raise FileChanged(errno.ESTALE, "it has changed since it was read", path)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        _flush_folder(folder)


def _write_new(
    path: str, content: bytes, mode: int, old: os.stat_result | None, model: str
) -> None:
    flags = WRITE | os.O_CREAT | os.O_EXCL | NOT_THROUGH_LINKS
    # No other user may read it before it has the mode of the old file.
    descriptor = os.open(path, flags, mode if old is None else 0o600)
    try:
        _write_all(descriptor, content)
        if old is not None:
            _take_over(descriptor, old, model)
        _flush(descriptor)
    finally:
        os.close(descriptor)


def _take_over(descriptor: int, old: os.stat_result, path: str) -> None:
    """Copy owner, mode and attributes of the old file, as far as permissions allow."""
    if sys.platform == "win32":
        # A file inherits its permissions from the folder.
        return
    mode = stat.S_IMODE(old.st_mode)
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.fchown(descriptor, -1, old.st_gid)
        with suppress(OSError):
            os.fchown(descriptor, old.st_uid, -1)
        now = os.fstat(descriptor)
    if now.st_uid != old.st_uid or now.st_gid != old.st_gid:
        mode &= ~(stat.S_ISUID | stat.S_ISGID)
    if now.st_gid != old.st_gid:
        # Do not give the old group's permissions to the new group.
        mode = mode & ~0o070 | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)
    if sys.platform == "linux":
        with suppress(OSError):
            for name in os.listxattr(path):
                with suppress(OSError):
                    os.setxattr(descriptor, name, os.getxattr(path, name))


def _flush(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_FOR_FSYNC:
            raise


def _flush_folder(folder: str) -> None:
    """Make the new name survive a power failure. The file itself is already flushed."""
    if sys.platform == "win32":
        # A folder cannot be opened there.
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _content(path: str, limit: int) -> bytes:
    """The current content of the file, at most `limit` bytes."""
    # It may have become a FIFO, which must not block, or a link to another file.
    with open(os.open(path, READ | NOT_THROUGH_LINKS), "rb") as file:
        return file.read(limit)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay signals that have a Python handler until the end of the block."""
    if threading.current_thread() is not threading.main_thread():
        # Python runs handlers in the main thread only, so no handler can raise here.
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    handlers = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    ours = {number: handler for number, handler in handlers.items() if callable(handler)}
    try:
        for number in ours:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
