"""Measure on this machine's GPU what the documentation still lacks.

    python -m tools.record_gpu FOLDER --python PYTHON [--only find guard/keras-fit ...] [--jobs 8]

PYTHON is an interpreter with TensorFlow, Keras and JAX (PyTorch if it is there), or
`--python jax=PYTHON` for one of them; nothing is installed into it. FOLDER gets rows.jsonl, a line
for each experiment as soon as it has ended, and NAME.log for each program of
tests/hardware/tensorflow_programs.py, without what it says of this machine: for docs/ and
tests/logs. The most informative experiments come first. Those that limit their memory can run side
by side (--jobs): then their seconds are upper bounds. Called again, it continues with those that
are missing, and then with those that ran out of time. Ctrl-C and SIGTERM end it and everything that
it has started; what had ended by then is kept.

--device cpu runs them with small batches where there is no GPU, to try the experiments themselves.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby
from pathlib import Path
from typing import TextIO

from benchmarks.machine import Interpreters, interpreters
from tools.gpu_experiments import Experiment, Machine, NotYet, Row, experiments
from tools.gpu_runs import Stopped, stop_all
from whygpu.api import snapshot
from whygpu.model.observed import Known

ROWS = "rows.jsonl"
LEAST_SECONDS = 20.0
"""With less time left, no experiment is started."""
LEAST_SHARE = 0.25
"""The same, as a share of what an experiment may take: a search does not get far in 20 s."""


def gpu_bytes() -> int | None:
    """The memory of the GPU; None if the driver shows none."""
    gpus = snapshot(sys.executable, probe=False).driver.gpus
    sizes = [gpu.memory_total_bytes for gpu in gpus.value] if isinstance(gpus, Known) else []
    return next((size.value for size in sizes if isinstance(size, Known)), None)


def rows_of(folder: Path) -> dict[str, Row]:
    """What was measured before; of an experiment that was done again, the last row."""
    file = folder / ROWS
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    rows = {}
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            # The process was killed while it wrote.
            continue
        rows[row["name"]] = row
    return rows


def chosen(all_of_them: Iterable[Experiment], only: list[str]) -> list[Experiment]:
    """Those that are named, or whose kind is."""
    every = list(all_of_them)
    known = {part for each in every for part in (each.name, each.name.partition("/")[0])}
    unknown = sorted(set(only) - known)
    if unknown:
        raise SystemExit(f"unknown: {', '.join(unknown)}; --list prints the names")
    return [
        each for each in every if not only or {each.name, each.name.partition("/")[0]} & set(only)
    ]


def carried_out(
    waiting: Iterable[Experiment], machine: Machine, seconds: float, jobs: int = 1
) -> Iterator[Row]:
    """The rows of experiments that were not done yet, within the time."""
    until = time.monotonic() + seconds
    rows = rows_of(machine.folder)
    missing = [each for each in waiting if rows.get(each.name, {}).get("code") is None]
    # What ran out of time may do so again: it must not cost the others their turn.
    tried = frozenset(rows)
    in_order = sorted(missing, key=lambda each: each.name in tried)
    for _, together in groupby(in_order, lambda each: (each.name in tried, each.beside)):
        group = list(together)
        with ThreadPoolExecutor(jobs if group[0].beside else 1) as pool:
            runs = [pool.submit(_row, each, machine, rows, until) for each in group]
            try:
                for run in as_completed(runs):
                    row = run.result()
                    if row is not None:
                        rows[row["name"]] = row
                        yield row
            except BaseException:
                # The pool waits for its threads, and they for their processes.
                pool.shutdown(wait=False, cancel_futures=True)
                stop_all()
                raise


def _row(each: Experiment, machine: Machine, rows: Mapping[str, Row], until: float) -> Row | None:
    """None if it was not started."""
    left = until - time.monotonic()
    if left < max(LEAST_SECONDS, LEAST_SHARE * each.seconds):
        return None
    try:
        found = each.carry_out(machine, rows, min(each.seconds, left))
    except NotYet as lacking:
        print(f"{each.name}: needs {lacking}", file=sys.stderr)
        return None
    except Stopped:
        return None
    except Exception:
        # One that cannot be carried out must not cost the others their time on a GPU.
        found = {"code": None, "error": traceback.format_exc(limit=-3)}
    return {"name": each.name, **found}


def absolute(given: Interpreters) -> Interpreters:
    """With whole paths, because programs are started in folders of their own."""
    named = {framework: _path(word) for framework, word in given.named.items()}
    return Interpreters(named, _path(given.default) if given.default else "")


def _path(word: str) -> str:
    python = shutil.which(word)
    if python is None:
        raise SystemExit(f"{word} cannot be executed")
    return str(Path(python).absolute())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--python", action="append", default=[], metavar="[FRAMEWORK=]PATH")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=1, help="at a time, of those with a limit")
    parser.add_argument("--seconds", type=float, default=1500.0, help="for all of them")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--list", action="store_true", help="print the names, and run nothing")
    options = parser.parse_args()
    waiting = chosen(experiments(), options.only)
    if options.list:
        print("\n".join(each.name for each in waiting))
        return
    if options.folder is None or not options.python:
        parser.error("FOLDER or --python is missing")
    size = gpu_bytes() if options.device == "gpu" else None
    if options.device == "gpu" and size is None:
        raise SystemExit("the NVIDIA driver shows no GPU here; --device cpu tries the experiments")
    options.folder.mkdir(parents=True, exist_ok=True)
    frameworks = absolute(interpreters(options.python))
    machine = Machine(frameworks, options.folder.absolute(), size)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    with (options.folder / ROWS).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"another process records into {options.folder}") from None
        _end_a_broken_line(file)
        try:
            for row in carried_out(waiting, machine, options.seconds, options.jobs):
                print(json.dumps(row), file=file, flush=True)
                print(json.dumps(row)[:400], file=sys.stderr, flush=True)
        finally:
            _say_what_is_missing(waiting, rows_of(options.folder))


def _end_a_broken_line(file: TextIO) -> None:
    """A process that was killed while it wrote must not spoil the next row."""
    file.seek(0)
    if not (file.read() or "\n").endswith("\n"):
        file.write("\n")


def _end(number: int, frame: object) -> None:
    raise SystemExit(128 + number)


def _say_what_is_missing(waiting: Iterable[Experiment], rows: Mapping[str, Row]) -> None:
    missing = [each.name for each in waiting if rows.get(each.name, {}).get("code") is None]
    if missing:
        print(f"call again for {len(missing)}: {', '.join(missing)}", file=sys.stderr)


if __name__ == "__main__":
    main()
