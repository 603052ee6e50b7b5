"""The database of past runs (SQLite).

Several processes may write at once: each write is one transaction, and waits a moment for others.
They may be on several machines that share the home of the user, which is why the database has no
write-ahead log: that is memory shared between processes of one machine.
The size is bounded by the number of runs and by bytes. The oldest ones are removed first, but the
last good run of each program stays as long as possible, because failures are compared with it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress

from whygpu.errors import UsageError
from whygpu.model.history import PastRun

try:
    import sqlite3
except ImportError as error:
    # Python can be built without it.
    raise UsageError("this Python has no module sqlite3, which the history needs") from error

FILE = "history.sqlite3"
MOST_RUNS = 200
MOST_BYTES = 4 << 20
"""Of compressed snapshots; one takes about ten thousand."""
LARGEST_SNAPSHOT = 1 << 24
"""Bytes of a snapshot that is read back."""
LARGEST_NUMBER = (1 << 63) - 1
"""SQLite has no larger integer."""
SCHEMA = 2
PATIENCE = 2.0
"""Seconds to wait for other writers. Whoever waits for an answer should not notice."""

_REMEDY = "`whygpu history clear` removes it"
_CREATE = """
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at TEXT NOT NULL,
    verb TEXT NOT NULL,
    target TEXT NOT NULL,
    program TEXT NOT NULL,
    verdict TEXT NOT NULL,
    summary TEXT NOT NULL,
    exit_code INTEGER NOT NULL,
    good INTEGER NOT NULL,
    snapshot BLOB NOT NULL,
    machine TEXT NOT NULL DEFAULT ''
);
"""
_CHANGES = {
    0: _CREATE,
    1: "ALTER TABLE runs ADD COLUMN machine TEXT NOT NULL DEFAULT '';",
}
"""From each older version to this one."""
_STORED = tuple(name for name in PastRun._fields if name not in ("number", "here"))
_SELECT = f"SELECT number, {', '.join(_STORED)}, machine = ? FROM runs"
"""The columns are those of a PastRun."""
_LAST_GOOD = "SELECT max(number) FROM runs WHERE good GROUP BY machine, target, verb, program"
_REMOVED_FIRST = f"""
SELECT number, length(snapshot) FROM runs
ORDER BY number IN ({_LAST_GOOD}), number
"""


class HistoryError(UsageError):
    """The database cannot be used. The message says why, and what to do."""


class Store:
    """The database in one folder. Every method may raise HistoryError."""

    def __init__(
        self, folder: str, machine: str, most_runs: int = MOST_RUNS, patience: float = PATIENCE
    ) -> None:
        """`machine` is any text that is another one on another machine."""
        self.path = os.path.join(folder, FILE)
        self._machine = machine
        self._most_runs = most_runs
        self._patience = patience

    def add(self, run: PastRun, snapshot: bytes) -> None:
        """Record a run of this machine; its number is ignored."""
        values = [getattr(run, name) for name in _STORED]
        values += [zlib.compress(snapshot), self._machine]
        columns = f"{', '.join(_STORED)}, snapshot, machine"
        places = ", ".join("?" * len(values))
        with self._opened() as database, _written_whole(database):
            database.execute(f"INSERT INTO runs ({columns}) VALUES ({places})", values)
            _remove_surplus(database, self._most_runs)

    def runs(self, most: int) -> tuple[PastRun, ...]:
        """The newest runs, newest first."""
        if not os.path.exists(self.path):
            return ()
        query = f"{_SELECT} ORDER BY number DESC LIMIT ?"
        values = (self._machine, min(most, LARGEST_NUMBER))
        with self._opened() as database:
            return tuple(map(_run, database.execute(query, values)))

    def count(self) -> int:
        if not os.path.exists(self.path):
            return 0
        with self._opened() as database:
            (count,) = database.execute("SELECT count(*) FROM runs").fetchone()
            return int(count)

    def last_good(
        self, target: str, program: str | None, verdicts: Sequence[str] = ("gpu", "no-gpu")
    ) -> PastRun | None:
        """The newest good run of a target; of a program, or (None) of any or a check.

        One of this machine if there is any, else one of another machine.
        """
        if not os.path.exists(self.path):
            return None
        query = (
            f"{_SELECT} WHERE good AND target = ? AND program = ifnull(?, program)"
            f" AND verdict IN ({', '.join('?' * len(verdicts))})"
            " ORDER BY machine = ? DESC, number DESC LIMIT 1"
        )
        values = (self._machine, target, program, *verdicts, self._machine)
        with self._opened() as database:
            row = database.execute(query, values).fetchone()
        return None if row is None else _run(row)

    def snapshot(self, number: int) -> bytes | None:
        """The snapshot of a run, as JSON; None if there is no such run."""
        if not os.path.exists(self.path) or abs(number) > LARGEST_NUMBER:
            return None
        with self._opened() as database:
            query = "SELECT snapshot FROM runs WHERE number = ?"
            row = database.execute(query, (number,)).fetchone()
        if row is None:
            return None
        try:
            content = zlib.decompressobj().decompress(row[0], LARGEST_SNAPSHOT)
        except (zlib.error, TypeError) as error:
            raise HistoryError(f"run {number} is damaged: {error}; {_REMEDY}") from error
        return content

    def size_bytes(self) -> int:
        size = 0
        for path in self._files():
            with suppress(OSError):
                size += os.path.getsize(path)
        return size

    def clear(self) -> None:
        """Remove the files, whatever is in them."""
        try:
            for path in self._files():
                with suppress(FileNotFoundError):
                    os.unlink(path)
        except OSError as error:
            raise HistoryError(f"{error.filename} cannot be removed: {error.strerror}") from error

    def _files(self) -> list[str]:
        return [self.path + end for end in ("", "-wal", "-shm", "-journal")]

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(self._connected()) as database:
                version = _version(database)
                if version > SCHEMA:
                    raise HistoryError(
                        f"{self.path} was written by a newer version of whygpu; update whygpu, or "
                        "remove the history with `whygpu history clear`"
                    )
                if version < SCHEMA:
                    _update(database)
                yield database
        except sqlite3.Error as error:
            if isinstance(error, sqlite3.OperationalError) and not _is_foreign(error):
                raise HistoryError(f"{self.path}: {error}") from error
            raise HistoryError(f"{self.path} is damaged ({error}); {_REMEDY}") from error
        except OSError as error:
            raise HistoryError(f"{self.path}: {error.strerror or error}") from error

    def _connected(self) -> sqlite3.Connection:
        if not os.path.exists(self.path):
            # SQLite would create it readable for everybody.
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        return sqlite3.connect(self.path, timeout=self._patience, isolation_level=None)


def _version(database: sqlite3.Connection) -> int:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    return int(version)


def _update(database: sqlite3.Connection) -> None:
    """Create the table, or add what an older version did not have."""
    with _written_whole(database):
        version = _version(database)  # Another process may have been faster.
        while version in _CHANGES:
            database.execute(_CHANGES[version])
            version = SCHEMA if version == 0 else version + 1
            database.execute(f"PRAGMA user_version = {version}")


def _is_foreign(error: sqlite3.OperationalError) -> bool:
    """Whether the database has other tables or columns than ours."""
    return "no such" in str(error) or "no column" in str(error)


@contextmanager
def _written_whole(database: sqlite3.Connection) -> Iterator[None]:
    """All of it is written, or nothing."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):
            database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def _remove_surplus(database: sqlite3.Connection, most_runs: int) -> None:
    sizes = database.execute(_REMOVED_FIRST).fetchall()
    count, size = len(sizes), sum(length for _, length in sizes)
    for number, length in sizes:
        if count <= most_runs and size <= MOST_BYTES:
            return
        database.execute("DELETE FROM runs WHERE number = ?", (number,))
        count, size = count - 1, size - length


def _run(row: tuple[object, ...]) -> PastRun:
    number, at, verb, target, program, verdict, summary, exit_code, good, here = row
    return PastRun(
        number=_whole(number),
        at=str(at),
        verb="run" if verb == "run" else "check",
        target=str(target),
        program=str(program),
        verdict=str(verdict),
        summary=str(summary),
        exit_code=_whole(exit_code),
        good=bool(good),
        here=bool(here),
    )


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise HistoryError(
            f"the history is damaged: expected a number, received {value!r:.40}; {_REMEDY}"
        )
    return value
