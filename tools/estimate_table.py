"""Hold the estimates against what was measured on a GPU, and put the tables into the docs.

python -m tools.estimate_table torch PYTHON [MODEL ...] [--file small_models.py] [--write]

PYTHON is an interpreter that has Keras and the framework; no GPU is needed. --file is the one of
tests/estimates that has the models.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from whygpu.memory.estimator import Wanted, estimate
from whygpu.model.estimate import BatchMemory, MemoryEstimate, MemoryRoom
from whygpu.model.work import What

ROOT = pathlib.Path(__file__).parent.parent
FOLDER = ROOT / "tests" / "estimates"
FILES = ("models.py", "small_models.py", "unseen_models.py")
PAGE = ROOT / "docs" / "measured" / "memory-estimate.md"
_HEAD = """\
| model | batch | inference: measured | estimated | off | training: measured | estimated | off |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""
_ENOUGH = MemoryRoom("on the H200", 1 << 50, (9, 0), "")
"""Tells the estimate which GPU it is about, without a search for the largest batch."""


def measured(framework: str, file: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((FOLDER / "h200.json").read_text())["measured"]
    return [row for row in rows if row["framework"] == framework and file_of(row) == file]


def file_of(row: dict[str, Any]) -> str:
    """The file that has the model."""
    return str(row.get("file", FILES[0]))


def wanted_of(row: dict[str, Any]) -> Wanted:
    """What a row of the measurements is about."""
    return Wanted(
        name=row["model"],
        what=What("function", str(FOLDER / file_of(row)), row["model"]),
        batch=row["batch"],
        mode=row["mode"],
        mixed=row["mixed"],
        backend=row["framework"],
        room=_ENOUGH,
        search=False,
    )


def estimated(row: dict[str, Any], python: str) -> MemoryEstimate:
    """The estimate for what a row of the measurements is about."""
    return estimate(wanted_of(row), python, os.environ, lambda text: None)


def lines(rows: Sequence[dict[str, Any]], python: str) -> Iterator[str]:
    """A line for each model, batch and precision, as the estimates come."""
    for (model, mixed, batch), group in groupby(rows, key=_subject):
        by_mode = {row["mode"]: row for row in group}
        cells = [_cells(by_mode.get(mode), python) for mode in ("infer", "train")]
        name = f"{model}, mixed precision" if mixed else model
        yield f"| {name} | {batch} | {' | '.join(cells)} |\n"


def _subject(row: dict[str, Any]) -> tuple[str, bool, int]:
    return row["model"], row["mixed"], row["batch"]


def _cells(row: dict[str, Any] | None, python: str) -> str:
    if row is None:
        return "not measured | | "
    peak = f"{_mib(row['peak_bytes'])}{' *' if row.get('with_building') else ''}"
    found = estimated(row, python)
    if found.at is None:
        return f"{peak} | {found.why} | "
    size = comparable(row, found.at)
    return f"{peak} | {_mib(size)} | {size / row['peak_bytes'] - 1:+.1%}"


def comparable(row: dict[str, Any], at: BatchMemory) -> int:
    """The estimate for the inputs that the measured step had: `fit` prepares more batches."""
    if "inputs_bytes" not in row:
        return at.peak_bytes
    counted = sum(part.bytes for part in at.parts if part.name == "inputs")
    return at.peak_bytes - counted + int(row["inputs_bytes"])


def _mib(size: int) -> str:
    return f"{size / (1 << 20):,.0f}"


def put_into(page: str, framework: str, file: str, table: str) -> str:
    """The page with the table of a framework and a file of models in its place."""
    start, end = f"<!-- estimates: {framework}, {file} -->\n", "<!-- end -->\n"
    pattern = re.escape(start) + ".*?" + re.escape(end)
    found = re.search(pattern, page, re.DOTALL)
    if found is None:
        raise SystemExit(f"{PAGE.name} has no place for it: expected {start.strip()}")
    return page[: found.start()] + start + table + end + page[found.end() :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=("torch", "jax", "tensorflow"))
    parser.add_argument("python")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--file", choices=FILES, default=FILES[0])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows = [
        row
        for row in measured(options.framework, options.file)
        if not options.models or row["model"] in options.models
    ]
    table = _HEAD
    for line in lines(rows, options.python):
        table += line
        print(line, end="", file=sys.stderr, flush=True)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        filled = put_into(page, options.framework, options.file, table)
        PAGE.write_text(filled, encoding="utf-8")
    else:
        print(table, end="")


if __name__ == "__main__":
    main()
