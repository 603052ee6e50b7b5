"""The database of past runs (SQLite).

Several processes may write at once: each write is one transaction, and waits a moment for others.
The size is bounded by the number of runs and by bytes. The oldest ones are removed first, but the
last good run of each program stays as long as possible, because failures are compared with it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
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
SCHEMA = 1
PATIENCE = 2.0
"""Seconds to wait for other writers. Whoever waits for an answer should not notice."""

_CREATE = f"""
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
    snapshot BLOB NOT NULL
);
PRAGMA user_version = {SCHEMA};
"""
_COLUMNS = ", ".join(PastRun._fields)
_LAST_GOOD = "SELECT max(number) FROM runs WHERE good GROUP BY target, verb, program"
_REMOVED_FIRST = f"""
SELECT number, length(snapshot) FROM runs
ORDER BY number IN ({_LAST_GOOD}), number
"""


class HistoryError(UsageError):
    """The database cannot be used. The message says why, and what to do."""


class Store:
    """The database in one folder. Every method may raise HistoryError."""

    def __init__(self, folder: str, most_runs: int = MOST_RUNS, patience: float = PATIENCE) -> None:
        self.path = os.path.join(folder, FILE)
        self._most_runs = most_runs
        self._patience = patience

    def add(self, run: PastRun, snapshot: bytes) -> None:
        """Record a run; its number is ignored."""
        values = (*run[1:], zlib.compress(snapshot))
        places = ", ".join("?" * len(values))
        with self._opened() as database, _written_whole(database):
            database.execute(
                f"INSERT INTO runs ({_COLUMNS.partition(', ')[2]}, snapshot) VALUES ({places})",
                values,
            )
            _remove_surplus(database, self._most_runs)

    def runs(self, most: int) -> tuple[PastRun, ...]:
        """The newest runs, newest first."""
        if not os.path.exists(self.path):
            return ()
        query = f"SELECT {_COLUMNS} FROM runs ORDER BY number DESC LIMIT ?"
        with self._opened() as database:
            return tuple(map(_run, database.execute(query, (most,))))

    def count(self) -> int:
        if not os.path.exists(self.path):
            return 0
        with self._opened() as database:
            (count,) = database.execute("SELECT count(*) FROM runs").fetchone()
            return int(count)

    def last_good(self, target: str, program: str | None) -> PastRun | None:
        """The newest good run of a target; of a program, or (None) of any or a check."""
        if not os.path.exists(self.path):
            return None
        query = (
            f"SELECT {_COLUMNS} FROM runs"
            " WHERE good AND target = ? AND program = ifnull(?, program)"
            " ORDER BY number DESC LIMIT 1"
        )
        with self._opened() as database:
            row = database.execute(query, (target, program)).fetchone()
        return None if row is None else _run(row)

    def snapshot(self, number: int) -> bytes | None:
        """The snapshot of a run, as JSON; None if there is no such run."""
        if not os.path.exists(self.path):
            return None
        with self._opened() as database:
            query = "SELECT snapshot FROM runs WHERE number = ?"
            row = database.execute(query, (number,)).fetchone()
        if row is None:
            return None
        try:
            content = zlib.decompressobj().decompress(row[0], LARGEST_SNAPSHOT)
        except (zlib.error, TypeError) as error:
            raise HistoryError(f"run {number} is damaged: {error}") from error
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
                (version,) = database.execute("PRAGMA user_version").fetchone()
                if version > SCHEMA:
                    raise HistoryError(
                        f"{self.path} was written by a newer version of whygpu; update whygpu, or "
                        "remove the history with `whygpu history clear`"
                    )
                if version < SCHEMA:
                    database.executescript(f"BEGIN IMMEDIATE;{_CREATE}COMMIT;")
                yield database
        except sqlite3.OperationalError as error:
            raise HistoryError(f"{self.path}: {error}") from error
        except sqlite3.Error as error:
            raise HistoryError(
                f"{self.path} is damaged ({error}); `whygpu history clear` removes it"
            ) from error
        except OSError as error:
            raise HistoryError(f"{self.path}: {error.strerror or error}") from error

    def _connected(self) -> sqlite3.Connection:
        if not os.path.exists(self.path):
            # SQLite would create it readable for everybody.
            os.close(os.open(self.path, os.O_CREAT | os.O_WRONLY, 0o600))
        database = sqlite3.connect(self.path, timeout=self._patience, isolation_level=None)
        # Readers do not wait for a writer then. Some file systems cannot do it.
        with suppress(sqlite3.OperationalError):
            database.execute("PRAGMA journal_mode = WAL")
        return database


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
    number, at, verb, target, program, verdict, summary, exit_code, good = row
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
    )


def _whole(value: object) -> int:
    if not isinstance(value, int):
        raise HistoryError(f"expected a number in the history, received {value!r:.40}")
    return value
