"""The database of past runs: bounded, shared by several processes, and never a reason to fail."""

from __future__ import annotations

import json
import os
import pathlib
import sqlite3
import stat
import subprocess
import sys

import pytest

from whygpu.model.history import PastRun, RecordedVerb
from whygpu.past_runs.store import LARGEST_SNAPSHOT, MOST_BYTES, HistoryError, Store


def run(number: int = 0, *, good: bool = False, program: str = "", target: str = "/env") -> PastRun:
    verdict = "gpu" if good else "cpu"
    at = f"2026-11-11T09:{number % 60:02}:00Z"
    verb: RecordedVerb = "run" if program else "check"
    return PastRun(0, at, verb, target, program, verdict, "", 0, good, here=True)


def noise(size: int) -> bytes:
    """Bytes that cannot be compressed."""
    return os.urandom(size)


def test_what_was_added_is_there(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    store.add(run(1, good=True), b'{"one": 1}')
    store.add(run(2, program="python train.py"), b'{"two": 2}')
    second, first = store.runs(10)
    assert (first.number, first.good, first.program) == (1, True, "")
    assert (second.number, second.good, second.program) == (2, False, "python train.py")
    assert json.loads(store.snapshot(2) or b"") == {"two": 2}
    assert store.snapshot(3) is None
    assert [item.number for item in store.runs(1)] == [2]
    assert store.count() == 2


def test_a_number_that_sqlite_does_not_have_is_no_run(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    store.add(run(1), b"{}")
    assert store.snapshot(10**30) is None
    assert store.snapshot(-(10**30)) is None
    assert len(store.runs(10**30)) == 1


def test_nobody_else_can_read_it(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    store.add(run(), b"{}")
    assert stat.S_IMODE(os.stat(store.path).st_mode) == 0o600


def test_reading_creates_nothing(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    assert store.runs(5) == ()
    assert store.last_good("/env", None) is None
    assert store.snapshot(1) is None
    assert list(tmp_path.iterdir()) == []


def test_the_last_good_run_is_that_of_the_same_environment_and_program(
    tmp_path: pathlib.Path,
) -> None:
    store = Store(str(tmp_path), "here")
    store.add(run(good=True), b"{}")
    store.add(run(good=True, program="python a.py"), b"{}")
    store.add(run(good=True, program="python b.py"), b"{}")
    store.add(run(good=False), b"{}")
    store.add(run(good=True, target="/other"), b"{}")

    def number(target: str, program: str | None) -> int | None:
        found = store.last_good(target, program)
        return None if found is None else found.number

    assert number("/env", None) == 3
    assert number("/env", "python a.py") == 2
    assert number("/env", "python c.py") is None
    assert number("/none", None) is None


def test_a_good_run_of_this_machine_comes_before_those_of_others(tmp_path: pathlib.Path) -> None:
    here, there = Store(str(tmp_path), "here"), Store(str(tmp_path), "there")
    there.add(run(good=True), b"{}")
    found = here.last_good("/env", None)
    assert found is not None
    assert (found.number, found.here) == (1, False)
    here.add(run(good=True), b"{}")
    there.add(run(good=True), b"{}")
    for store, number in ((here, 2), (there, 3)):
        found = store.last_good("/env", None)
        assert found is not None
        assert (found.number, found.here) == (number, True)
    assert [item.here for item in here.runs(5)] == [False, True, False]


def test_only_the_verdicts_that_were_asked_for_are_good_enough(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    store.add(run(good=True), b"{}")
    store.add(run(good=True)._replace(verdict="no-gpu"), b"{}")
    numbers = [store.last_good("/env", None, verdicts) for verdicts in (("gpu",), ("no-gpu",))]
    assert [found and found.number for found in numbers] == [1, 2]


def test_a_database_of_the_first_version_is_updated(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    old = sqlite3.connect(store.path)
    old.executescript(
        "CREATE TABLE runs (number INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, verb TEXT"
        " NOT NULL, target TEXT NOT NULL, program TEXT NOT NULL, verdict TEXT NOT NULL, summary"
        " TEXT NOT NULL, exit_code INTEGER NOT NULL, good INTEGER NOT NULL, snapshot BLOB);"
        "INSERT INTO runs VALUES (7, '', 'check', '/env', '', 'gpu', '', 0, 1, x'00');"
        "PRAGMA user_version = 1;"
    )
    old.close()
    assert [(item.number, item.here) for item in store.runs(5)] == [(7, False)]
    store.add(run(), b"{}")
    assert [(item.number, item.here) for item in store.runs(5)] == [(8, True), (7, False)]


def test_the_oldest_go_first_and_the_last_good_one_stays(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here", most_runs=10)
    store.add(run(good=True), b"{}")
    store.add(run(good=True), b"{}")
    for number in range(30):
        store.add(run(number), b"{}")
    numbers = [item.number for item in store.runs(100)]
    assert numbers == [*range(32, 23, -1), 2]


@pytest.mark.slow
def test_it_does_not_grow_beyond_its_bytes(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    for number in range(30):
        store.add(run(number, good=True, target=f"/env{number}"), noise(500_000))
    assert store.count() == MOST_BYTES // 500_000
    assert store.runs(1)[0].number == 30
    assert store.size_bytes() < 2 * MOST_BYTES + 2_000_000


@pytest.mark.slow
def test_a_snapshot_that_is_a_bomb_is_cut(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    store.add(run(), b" " * (LARGEST_SNAPSHOT * 4))
    content = store.snapshot(1)
    assert content is not None
    assert len(content) <= LARGEST_SNAPSHOT


_WRITER = """
import sys
from tests.past_runs.test_store import run
from whygpu.past_runs.store import Store
for number in range(10):
    Store(sys.argv[1], "here").add(run(number), b"{}")
"""


@pytest.mark.slow
def test_several_processes_write_at_once(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-c", _WRITER, str(tmp_path)]
    writers = [subprocess.Popen(command) for _ in range(6)]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * 6
    store = Store(str(tmp_path), "here")
    assert store.count() == 60
    assert len({item.number for item in store.runs(100)}) == 60


def test_somebody_holds_the_lock(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here", patience=0.1)
    store.add(run(), b"{}")
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(HistoryError, match="locked"):
        store.add(run(), b"{}")
    assert store.count() == 1
    other.close()


@pytest.mark.parametrize("content", [b"no database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_damaged_database(content: bytes, tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    pathlib.Path(store.path).write_bytes(content)
    with pytest.raises(HistoryError, match="history clear"):
        store.runs(5)
    with pytest.raises(HistoryError, match="history clear"):
        store.add(run(), b"{}")
    store.clear()
    store.add(run(), b"{}")
    assert store.count() == 1


def test_a_database_of_a_later_version(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    store.add(run(), b"{}")
    later = sqlite3.connect(store.path)
    later.execute("PRAGMA user_version = 99")
    later.close()
    with pytest.raises(HistoryError, match="newer version"):
        store.add(run(), b"{}")


def test_another_table_of_that_name(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    strange = sqlite3.connect(store.path)
    strange.execute("CREATE TABLE runs (number TEXT)")
    strange.commit()
    strange.close()
    with pytest.raises(HistoryError):
        store.runs(5)


def test_values_of_the_wrong_type(tmp_path: pathlib.Path) -> None:
    store = Store(str(tmp_path), "here")
    store.add(run(), b"{}")
    hand = sqlite3.connect(store.path)
    hand.execute("UPDATE runs SET exit_code = 'x', snapshot = 'no bytes'")
    hand.commit()
    hand.close()
    with pytest.raises(HistoryError, match="expected a number"):
        store.runs(5)
    with pytest.raises(HistoryError, match="damaged"):
        store.snapshot(1)


_FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
from tests.past_runs.test_store import noise, run
from whygpu.past_runs.store import HistoryError, Store
store = Store(sys.argv[1], "here")
store.add(run(), b"{}")
try:
    store.add(run(), noise(100_000))
except HistoryError as error:
    print(error)
print(store.count())
"""


@pytest.mark.slow
def test_a_full_disk_keeps_what_was_there(tmp_path: pathlib.Path) -> None:
    # Without -B it may write byte code, which is cut off and breaks every later start.
    command = [sys.executable, "-B", "-c", _FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    message, count = done.stdout.splitlines()
    assert "history.sqlite3" in message
    assert count == "1"
