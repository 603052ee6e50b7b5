"""The temporary folder of a run, for the settings and records of its processes.

It is removed when the run ends. If whygpu was killed, the last process of the program removes it
(abandoned_folder.py in the bootstrap). A lock that the launcher holds shows that a run is still
alive; its process number would not, because it means nothing in another PID namespace, such as a
container's.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

REPORTS = "reports"
SETTINGS = "settings.json"
"""Names in the folder, which the bootstrap knows as well."""

_PREFIX = "whygpu-run-"
_LOCK = "lock"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class NoFolder(Exception):
    """No temporary folder can be made; the message says why."""


@contextmanager
def run_folder() -> Iterator[str]:
    """A folder that nobody removes before the block ends."""
    try:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
    except OSError as error:
        raise NoFolder(error.strerror or str(error)) from error
    try:
        with _locked(folder):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Hold the lock of the folder. On a file system without locks, only we remove the folder."""
    path = os.path.join(folder, _LOCK)
    descriptor = -1
    try:
        try:
            descriptor = os.open(path + ".new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(descriptor, _boot_id())
            # It gets the name that others look for only now: nobody ever sees it unlocked.
            os.rename(path + ".new", path)
        except OSError:
            pass
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _boot_id() -> bytes:
    """Identifies this boot of this machine: locks are reliable only among its processes."""
    try:
        with open(_BOOT_ID, "rb") as file:
            return file.read(64)
    except OSError:
        return b""
