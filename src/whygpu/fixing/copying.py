"""Copies the folder of an environment so that changing the copy cannot change the original.

A library of a gigabyte should cost nothing. So large files are copies that share their blocks, if
the file system can do that, or else hard links, because installers replace files and do not write
into them. `written_files` finds out if something did. Small files, which people edit in place, are
real copies.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

LINKED_FROM = 1 << 16
"""Bytes: smaller files are copied."""
MOST_FILES = 1_000_000
_CANNOT_LINK = (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOTSUP, errno.ENOSYS)
_FICLONE = 0x40049409
"""The request of Linux to copy a file by sharing its blocks, which Btrfs and XFS support."""
_EVERY = 500
"""Files between two reports of progress."""

Count = Callable[[int], None]


class NotCopied(Exception):
    """The environment cannot be copied; the message says why."""


class Size(NamedTuple):
    files: int
    size_bytes: int
    small_bytes: int
    """Bytes in files that are copied even if links are possible."""
    outside: tuple[str, ...]
    """Folders of the environment that are links to folders outside of it."""


class Entry(NamedTuple):
    path: str
    """Relative to the folder."""
    facts: os.stat_result
    leads_outside: bool = False
    """It is a link to a folder outside. Its content comes next, as if it were a folder: an
    installer that works in the copy must not change what the link leads to."""


def entries(folder: str) -> Iterator[Entry]:
    """Everything below a folder, each folder before its content."""
    home = os.path.realpath(folder)
    waiting: list[tuple[str, frozenset[str]]] = [("", frozenset())]
    while waiting:
        inside, above = waiting.pop()
        try:
            with os.scandir(os.path.join(folder, inside)) as found:
                here = sorted(found, key=lambda item: item.name)
        except OSError as error:
            raise NotCopied(f"{error.filename}: {error.strerror}") from error
        for item in here:
            path = os.path.join(inside, item.name)
            outside = _outside_folder(item, home)
            if outside in above:
                raise NotCopied(f"{item.path} is a link into a folder that contains it")
            yield Entry(path, item.stat(follow_symlinks=outside is not None), outside is not None)
            if outside is not None or item.is_dir(follow_symlinks=False):
                waiting.append((path, above if outside is None else above | {outside}))


def _outside_folder(item: os.DirEntry[str], home: str) -> str | None:
    """The folder that a link leads to, if it is outside of the environment."""
    if not item.is_symlink() or not os.path.isdir(item.path):
        return None
    real = os.path.realpath(item.path)
    return None if real == home or real.startswith(f"{home}/") else real


def size_of(folder: str) -> Size:
    files = size = small = 0
    outside = []
    for path, facts, leads_outside in entries(folder):
        if leads_outside:
            outside.append(path)
        if not stat.S_ISREG(facts.st_mode):
            continue
        files += 1
        size += facts.st_size
        small += facts.st_size if facts.st_size < LINKED_FROM else 0
        if files > MOST_FILES:
            raise NotCopied(f"{folder} has more than {MOST_FILES:,} files")
    return Size(files, size, small, tuple(outside))


def copy_tree(
    source: str,
    destination: str,
    on_count: Count | None = None,
    *,
    linked_from: int = LINKED_FROM,
) -> int:
    """Copy everything, and return the bytes that the copy takes on the disk.

    Files of at least `linked_from` bytes are linked, if the file system can do that.
    """
    copied = 0
    os.mkdir(destination, 0o700)
    folders = [("", os.stat(source))]
    for number, (path, facts, _) in enumerate(entries(source)):
        if on_count is not None and number % _EVERY == 0:
            on_count(number)
        old, new = os.path.join(source, path), os.path.join(destination, path)
        try:
            if stat.S_ISDIR(facts.st_mode):
                os.mkdir(new, 0o700)
                folders.append((path, facts))
            elif stat.S_ISLNK(facts.st_mode):
                os.symlink(_moved_link(os.readlink(old), source, destination), new)
            elif stat.S_ISREG(facts.st_mode):
                copied += _copy_file(old, new, facts.st_size, linked_from)
        except OSError as error:
            raise NotCopied(f"{old}: {error.strerror}") from error
    for path, facts in reversed(folders):
        # Last, because a folder without write permission could not be filled.
        new = os.path.join(destination, path)
        os.chmod(new, stat.S_IMODE(facts.st_mode))
        os.utime(new, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    return copied


def _copy_file(old: str, new: str, size: int, linked_from: int) -> int:
    if size >= linked_from:
        if linked_from and _cloned(old, new):
            return 0
        try:
            os.link(old, new, follow_symlinks=False)
            return 0
        except OSError as error:
            if error.errno not in _CANNOT_LINK:
                raise
    shutil.copy2(old, new, follow_symlinks=False)
    return size


def _cloned(old: str, new: str) -> bool:
    """Whether the file system made a copy that shares the blocks and not the file."""
    with open(old, "rb") as source, open(new, "xb") as copy:
        try:
            fcntl.ioctl(copy.fileno(), _FICLONE, source.fileno())
        except OSError:
            os.unlink(new)
            return False
    shutil.copystat(old, new)
    return True


def linked_files(copy: str, original: str) -> dict[str, tuple[int, int]]:
    """The files that the copy shares with the original, with their size and time."""
    found = {}
    for path, facts, _ in entries(copy):
        if stat.S_ISREG(facts.st_mode) and facts.st_nlink > 1:
            with suppress(OSError):
                if os.lstat(os.path.join(original, path)).st_ino == facts.st_ino:
                    found[path] = (facts.st_size, facts.st_mtime_ns)
    return found


def written_files(original: str, linked: Mapping[str, tuple[int, int]]) -> list[str]:
    """Those that somebody has written into since."""
    changed = []
    for path, before in linked.items():
        with suppress(OSError):
            now = os.lstat(os.path.join(original, path))
            if (now.st_size, now.st_mtime_ns) != before:
                changed.append(path)
    return changed


def written_since(folder: str, saved: str, since_ns: int) -> tuple[str, ...]:
    """Files that both folders share and that somebody has written into since then."""
    return tuple(
        path for path, (_, time_ns) in linked_files(folder, saved).items() if time_ns >= since_ns
    )


def move_links(folder: str, old: str, new: str) -> None:
    """Let absolute links of a folder that lead into one place lead into another."""
    for path, facts, _ in entries(folder):
        if not stat.S_ISLNK(facts.st_mode):
            continue
        name = os.path.join(folder, path)
        leads_to = os.readlink(name)
        moved = _moved_link(leads_to, old, new)
        if moved != leads_to:
            os.symlink(moved, f"{name}.whygpu-new")
            os.replace(f"{name}.whygpu-new", name)


def _moved_link(leads_to: str, source: str, destination: str) -> str:
    """A link to an absolute path in the environment, by any of its names, leads into the copy."""
    if not os.path.isabs(leads_to):
        return leads_to
    folder, name = os.path.split(leads_to)
    for path in (
        leads_to,
        os.path.join(os.path.realpath(folder), name),
        os.path.realpath(leads_to),
    ):
        if path == source or path.startswith(f"{source}/"):
            return destination + path[len(source) :]
    return leads_to


def keep_owners(copy: str, original: str) -> None:
    """Give every file of the copy the owner and group that it has in the original, and a new one
    those of the whole. PermissionError if a file belongs to somebody else.
    """
    whole = os.stat(original)
    for path, now, _ in (Entry("", os.stat(copy)), *entries(copy)):
        try:
            then = os.lstat(os.path.join(original, path))
        except OSError:
            then = whole
        if (now.st_uid, now.st_gid) == (then.st_uid, then.st_gid):
            continue
        try:
            os.chown(os.path.join(copy, path), then.st_uid, then.st_gid, follow_symlinks=False)
        except PermissionError:
            # Nobody can give a file to a group that they are not in; the owner decides.
            if now.st_uid != then.st_uid:
                raise


def replace_in_text_files(folder: str, paths: Iterator[str], old: str, new: str) -> tuple[str, ...]:
    """Replace a path in these files. Returns the binary files that contain it, unchanged."""
    # Not a longer name that begins in the same way: /srv/env is not in /srv/env-sources.
    before = re.compile(re.escape(os.fsencode(old)) + rb"(?![\w.-])")
    after = os.fsencode(new)
    binary = []
    for path in paths:
        name = os.path.join(folder, path)
        with open(name, "rb") as file:
            content = file.read()
        if not before.search(content):
            continue
        if b"\0" in content:
            binary.append(path)
            continue
        facts = os.stat(name)
        # A new file: the content of a hard link would change in both trees.
        with open(f"{name}.whygpu-new", "xb") as file:
            file.write(before.sub(lambda _: after, content))
        os.chmod(f"{name}.whygpu-new", stat.S_IMODE(facts.st_mode))
        os.replace(f"{name}.whygpu-new", name)
    return tuple(binary)


def start_up_files(folder: str) -> Iterator[str]:
    """The files that add folders to sys.path when Python starts."""
    for path, facts, _ in entries(folder):
        if path.endswith(".pth") and stat.S_ISREG(facts.st_mode):
            yield path


def different_files(folder: str, original: str) -> Iterator[str]:
    """Regular files of a folder that the original does not have, or has with another content.

    Compiled Python files are left out: Python corrects the path in them when it loads them.
    """
    for path, facts, _ in entries(folder):
        if not stat.S_ISREG(facts.st_mode) or path.endswith(".pyc"):
            continue
        try:
            old = os.lstat(os.path.join(original, path))
        except FileNotFoundError:
            yield path
            continue
        if (old.st_size, old.st_mtime_ns) != (facts.st_size, facts.st_mtime_ns):
            yield path
