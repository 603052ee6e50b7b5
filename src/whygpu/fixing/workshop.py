"""The folder next to an environment with its copy, and the exchange that makes the copy real.

The folder has a random identity. The copy is built and changed in it. To apply a fix, the copy gets
a marker with that identity, and one step of the kernel exchanges it with the environment. So an
interruption at any time leaves either the old environment or the new one, complete.

After the exchange the folder holds the old environment, and the marker in the new one names the
folder: that is the way back. The old environment may have a marker too, of an earlier fix. A folder
without a record, or whose copy still has its own marker, is left over from an interrupted fix and
is removed.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple

from whygpu.fixing.copying import entries
from whygpu.fixing.exchange import exchange
from whygpu.model.codec import decode, encode

MARKER = ".whygpu-fix"
"""In the environment: the identity of the folder with the environment as it was before."""
_COPY = "environment"
_RECORD = "record.json"
_LOCK = "lock"
_IDENTITY_BYTES = 6
_SECONDS_WITHOUT_LOCK = 60.0


class NotApplied(Exception):
    """The environment was not changed; the message says why."""


class NothingToUndo(Exception):
    """No fix was applied here, or what is needed to undo it is gone."""


class Record(NamedTuple):
    """What a fix did, kept with the environment as it was before."""

    applied_at: str
    steps: tuple[str, ...]
    """The commands of the fix."""
    fingerprint: str
    """Of the environment right after the fix."""
    packages: dict[str, str]
    """The same for its packages: their versions by their names."""


class Workshop(NamedTuple):
    environment: str
    folder: str
    can_exchange: bool
    """The folder is next to the environment, so that the two can be exchanged."""

    @property
    def copy(self) -> str:
        return os.path.join(self.folder, _COPY)

    @property
    def identity(self) -> str:
        return os.path.basename(self.folder).rpartition("-")[2]

    @property
    def is_installed(self) -> bool:
        """Whether the copy is the environment now."""
        return _marker(self.environment) == self.identity

    @property
    def applied_ns(self) -> int:
        """When the fix was applied."""
        return os.stat(os.path.join(self.folder, _RECORD)).st_mtime_ns

    def install(self, record: Record) -> None:
        """Exchange the environment and the copy. If this raises, nothing has changed."""
        if not self.can_exchange:
            parent = os.path.dirname(self.environment)
            raise NotApplied(f"no folder can be created in {parent}, next to the environment")
        marker = os.path.join(self.copy, MARKER)
        try:
            with suppress(FileNotFoundError):
                os.unlink(marker)
            # Before the record: a folder with a record and without it holds an old environment.
            _write_new(marker, self.identity)
            _write_new(os.path.join(self.folder, _RECORD), json.dumps(encode(record)))
            self._give_to_the_owner(marker)
        except OSError as error:
            raise NotApplied(f"{self.folder}: {error.strerror}") from error
        # A power failure must not leave a new name for content that was never written.
        os.sync()
        self._exchange()

    def _give_to_the_owner(self, marker: str) -> None:
        """If root does it, the way back is for the user whose environment it is."""
        if os.geteuid() != 0:
            return
        owner = os.stat(self.environment)
        beside = (entry for entry in os.listdir(self.folder) if entry != _COPY)
        for path in (self.folder, marker, *(os.path.join(self.folder, name) for name in beside)):
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)

    def take_back(self) -> None:
        """Exchange them again, after `install`."""
        self._exchange()

    def _exchange(self) -> None:
        try:
            exchange(self.environment, self.copy)
        except OSError as error:
            raise NotApplied(_no_exchange(error, self.environment)) from error


def _no_exchange(error: OSError, environment: str) -> str:
    if error.errno in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return f"the file system of {environment} cannot exchange two folders in one step"
    if error.errno == errno.EXDEV:
        return (
            f"{environment} cannot be renamed: it belongs to a lower layer of a container's file "
            "system, or is a mount"
        )
    if error.errno == errno.EBUSY:
        return f"{environment} is a mount"
    return f"{environment} cannot be exchanged with the copy: {error.strerror}"


@contextmanager
def workshop(environment: str) -> Iterator[Workshop]:
    """A folder for a copy. It is removed at the end unless it holds the way back."""
    remove_leftovers(environment)
    parent, name = os.path.split(environment)
    beside = os.access(parent, os.W_OK | os.X_OK)
    place = parent if beside else tempfile.gettempdir()
    folder = os.path.join(place, f"{_prefix(name)}{secrets.token_hex(_IDENTITY_BYTES)}")
    os.mkdir(folder, 0o700)
    lock = _lock(folder)
    try:
        with suppress(OSError):
            # The environment may be in a project, whose list of ignored files names only itself.
            _write_new(os.path.join(folder, ".gitignore"), "*\n")
        yield Workshop(environment, folder, beside)
    finally:
        if not _holds_an_old_environment(folder):
            remove_workshop(folder)
        os.close(lock)


@contextmanager
def alone(environment: str) -> Iterator[None]:
    """Wait until no other fix exchanges something in the folder of this environment."""
    with ExitStack() as opened:
        # A folder may be unreadable, and some network file systems have no locks. Then only the
        # fingerprint protects.
        with suppress(OSError):
            folder = os.path.dirname(environment)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            opened.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


def remove_workshop(folder: str) -> None:
    """Remove the folder; an interruption leaves what the next fix removes.

    Its record goes first: with one, a copy that has lost its marker looks like an old environment.
    Its lock goes last: without one, the folder looks as if it were new.
    """
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, _RECORD))
    for name in os.listdir(folder):
        if name != _LOCK:
            remove(os.path.join(folder, name))
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, _LOCK))
    os.rmdir(folder)


def remove(folder: str) -> None:
    """Remove a file or a tree, also if folders in it are without write permission."""

    def permit(function: Any, path: str, error: Any) -> None:
        with suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            os.chmod(path, 0o700)
            function(path)

    if os.path.isdir(folder):
        shutil.rmtree(folder, onerror=permit)
    else:
        os.unlink(folder)


def remove_leftovers(environment: str) -> None:
    """Remove what interrupted fixes of this environment left behind."""
    parent, name = os.path.split(environment)
    with suppress(OSError):
        for entry in os.listdir(parent):
            folder = os.path.join(parent, entry)
            if not entry.startswith(_prefix(name)):
                continue
            facts = os.lstat(folder)
            if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
                continue
            if _abandoned(folder) and not _holds_an_old_environment(folder):
                remove_workshop(folder)


def _holds_an_old_environment(folder: str) -> bool:
    """Whether an exchange put it there: of this environment, or of one with a similar name."""
    identity = os.path.basename(folder).rpartition("-")[2]
    recorded = os.path.exists(os.path.join(folder, _RECORD))
    copy = os.path.join(folder, _COPY)
    return recorded and os.path.exists(copy) and _marker(copy) != identity


def last_fix(environment: str) -> tuple[Workshop, Record]:
    """The fix that the current environment came from."""
    identity = _marker(environment)
    if not identity:
        raise NothingToUndo("no fix was applied to it")
    folder = next(_history(environment), None)
    if folder is None:
        parent, name = os.path.split(environment)
        raise NothingToUndo(
            f"{_prefix(name)}{identity}, which held the environment as it was, is not in {parent}: "
            "it was deleted, or the environment was moved or renamed"
        )
    path = os.path.join(folder, _RECORD)
    try:
        with open(path, encoding="utf-8") as file:
            record = decode(Record, json.load(file))
        os.stat(os.path.join(folder, _COPY))
    except (OSError, ValueError) as error:
        raise NothingToUndo(
            f"{folder}, which holds the environment as it was, is damaged or gone"
        ) from error
    return Workshop(environment, folder, True), record


def fingerprint(environment: str) -> str:
    """Changes whenever a file of the environment changes, except for compiled Python files."""
    content = hashlib.sha256()
    for path, facts, _ in entries(environment):
        if stat.S_ISDIR(facts.st_mode) or path.endswith(".pyc") or path == MARKER:
            continue
        content.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode(errors="replace"))
    return content.hexdigest()


def packages_in(environment: str) -> dict[str, str]:
    """The installed packages by the names of their folders, without starting its Python."""
    found = {}
    for path, _, _ in entries(environment):
        if path.endswith((".dist-info", ".egg-info")):
            name, _, version = os.path.basename(path).rpartition(".")[0].partition("-")
            found[name] = version
    return found


def _history(environment: str) -> Iterator[str]:
    """The folders with earlier states of an environment, the newest first."""
    parent, name = os.path.split(environment)
    current, seen = environment, set[str]()
    while (identity := _marker(current)) and identity not in seen:
        seen.add(identity)
        folder = os.path.join(parent, f"{_prefix(name)}{identity}")
        if not os.path.isdir(folder):
            return
        yield folder
        current = os.path.join(folder, _COPY)


def _marker(environment: str) -> str:
    try:
        with open(os.path.join(environment, MARKER), encoding="ascii") as file:
            text = file.read(64)
    except (OSError, ValueError):
        return ""
    return text if len(text) == 2 * _IDENTITY_BYTES and text.isalnum() else ""


def _prefix(name: str) -> str:
    return f".{name.lstrip('.')}.whygpu-fix-"


def _lock(folder: str) -> int:
    descriptor = os.open(os.path.join(folder, _LOCK), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def _abandoned(folder: str) -> bool:
    """Whether no fix is at work in it."""
    try:
        descriptor = os.open(os.path.join(folder, _LOCK), os.O_WRONLY)
    except OSError:
        # It may have been created this moment, and get its lock in the next.
        return time.time() - os.lstat(folder).st_mtime > _SECONDS_WITHOUT_LOCK
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _write_new(path: str, text: str) -> None:
    with open(path, "x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
