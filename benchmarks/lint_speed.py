"""How many files a second `whygpu lint` looks at, beside parsing alone and beside pyflakes.

    python -m benchmarks.lint_speed FOLDER [--runs 5] [--json]

Every contestant reads the same files of the folder, in turn, round after round, so that a slow
moment of the machine hits all of them alike. Parsing alone (`ast.parse` of each file, on one core)
is the floor for anything that looks at syntax. pyflakes takes part where it is installed.

Where other programs use the cores too, the processor time of a contestant and its children says
more than the clock.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from whygpu.host.systems import cores
from whygpu.linter.files import find
from whygpu.linter.settings import Settings

WHYGPU = str(pathlib.Path(sys.executable).with_name("whygpu"))
PARSE = """
import ast, sys, warnings
warnings.simplefilter("ignore")
for line in sys.stdin:
    try:
        with open(line.rstrip("\\n"), "rb") as file:
            ast.parse(file.read())
    except (SyntaxError, ValueError):
        pass
"""


def contestants(folder: str, files: list[str]) -> dict[str, Callable[[], object]]:
    python = [file for file in files if file.endswith(".py")]
    names = "\n".join(python)

    def run(*command: str, given: str = "") -> Callable[[], object]:
        return lambda: subprocess.run(
            command, input=given, capture_output=True, text=True, check=False, timeout=600
        )

    chosen = {
        "ast.parse, one core": run(sys.executable, "-c", PARSE, given=names),
        f"whygpu lint, {cores()} cores": run(WHYGPU, "lint", "--json", folder),
    }
    if importlib.util.find_spec("pyflakes") is not None:
        chosen["pyflakes, one core"] = run(sys.executable, "-m", "pyflakes", folder)
    return chosen


def children_seconds() -> float:
    """The processor time of all programs that this one has started and that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    files = find([options.folder], Settings())
    seconds: dict[str, list[float]] = {}
    processor: dict[str, list[float]] = {}
    for _ in range(options.runs + 1):
        for name, run in contestants(options.folder, files).items():
            began, used = time.perf_counter(), children_seconds()
            run()
            seconds.setdefault(name, []).append(time.perf_counter() - began)
            processor.setdefault(name, []).append(children_seconds() - used)
    # The first round warms the page cache and writes byte code.
    medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
    floor = next(iter(medians.values()))
    rows = [
        {
            "name": name,
            "median_s": round(median, 3),
            "processor_s": round(statistics.median(processor[name][1:]), 3),
            "files_per_s": round(len(files) / median),
            "ratio_to_parsing": round(median / floor, 2),
        }
        for name, median in medians.items()
    ]
    if options.json:
        print(json.dumps({"files": len(files), "rows": rows}, indent=1))
        return
    print(f"{len(files)} files")
    for row in rows:
        print(
            f"{row['name']:24} {row['median_s']:8} s {row['files_per_s']:6} files/s "
            f"{row['ratio_to_parsing']:6} x parsing {row['processor_s']:8} s of processor time"
        )


if __name__ == "__main__":
    main()
