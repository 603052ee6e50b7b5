"""Measure on this machine's GPU what the documentation still lacks.

    python -m tools.record_gpu PYTHON FOLDER [--only find guard/keras-fit ...] [--seconds 1500]

PYTHON is an interpreter with TensorFlow, Keras and JAX (PyTorch if it is there); nothing is
installed into it. FOLDER gets rows.jsonl, a line for each experiment as soon as it has ended, and
NAME.log for each program of tests/hardware/tensorflow_programs.py, without what it says of this
machine: for docs/ and tests/logs. The experiments run one at a time, the most informative first.
Called again, it goes on with those that are missing or ran out of time.

--device cpu runs them with small batches where there is no GPU, to try the experiments themselves.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path

from tools.gpu_experiments import Experiment, Machine, NotYet, Row, experiments
from whygpu.api import snapshot
from whygpu.model.observed import Known

ROWS = "rows.jsonl"
LEAST_SECONDS = 20.0
"""With less time left, no experiment is started."""


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


def carried_out(waiting: Iterable[Experiment], machine: Machine, seconds: float) -> Iterator[Row]:
    """The rows of experiments that were not done yet, within the time."""
    began = time.monotonic()
    rows = rows_of(machine.folder)
    for each in waiting:
        done = rows.get(each.name)
        if done is not None and done["code"] is not None:
            continue
        left = seconds - (time.monotonic() - began)
        if left < LEAST_SECONDS:
            return
        try:
            found = each.carry_out(machine, rows, min(each.seconds, left))
        except NotYet as missing:
            print(f"{each.name}: needs {missing}", file=sys.stderr)
            continue
        except Exception:
            # One that cannot be carried out must not cost the others their time on a GPU.
            found = {"code": None, "error": traceback.format_exc(limit=-3)}
        rows[each.name] = {"name": each.name, **found}
        yield rows[each.name]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", nargs="?")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--seconds", type=float, default=1500.0, help="for all of them")
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--list", action="store_true", help="print the names, and run nothing")
    options = parser.parse_args()
    waiting = chosen(experiments(), options.only)
    if options.list:
        print("\n".join(each.name for each in waiting))
        return
    if options.folder is None:
        parser.error("PYTHON and FOLDER are missing")
    size = gpu_bytes() if options.device == "gpu" else None
    if options.device == "gpu" and size is None:
        raise SystemExit("the NVIDIA driver shows no GPU here; --device cpu tries the experiments")
    python = shutil.which(options.python)
    if python is None:
        parser.error(f"{options.python} cannot be executed")
    options.folder.mkdir(parents=True, exist_ok=True)
    machine = Machine(str(Path(python).absolute()), options.folder.absolute(), size)
    with (options.folder / ROWS).open("a", encoding="utf-8") as file:
        for row in carried_out(waiting, machine, options.seconds):
            print(json.dumps(row), file=file, flush=True)
            print(json.dumps(row)[:400], file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
