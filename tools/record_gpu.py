"""Run TensorFlow programs on this machine's GPU and keep what they print.

python -m tools.record_gpu PYTHON FOLDER [NAME ...]

FOLDER gets NAME.log for each program of tests/hardware/tensorflow_programs.py, and a line in
programs.jsonl as soon as it has ended, so that an interruption loses nothing. The logs are for
tests/logs, the lines for docs/tensorflow-on-gpu.md.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from tests.hardware.tensorflow_programs import PROGRAMS, Program
from whygpu.api.logs import explain_text

TIME_LIMIT = 120


class Ended(NamedTuple):
    code: int | None
    """None if it was stopped at the time limit."""
    output: str
    """Standard output and standard error, as a user would paste them."""
    seconds: float


def run(program: Program, python: str) -> Ended:
    """Run a program as a user does, without whygpu."""
    began = time.monotonic()
    try:
        done = subprocess.run(
            [python, "-u", "-c", program.code],
            env={**os.environ, **program.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIME_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired as stopped:
        text = (stopped.stdout or b"").decode("utf-8", "replace")
        return Ended(None, text, time.monotonic() - began)
    return Ended(done.returncode, done.stdout.decode("utf-8", "replace"), time.monotonic() - began)


def row(program: Program, ended: Ended) -> dict[str, object]:
    """What happened, and whether it is what was expected."""
    answer = explain_text(ended.output)
    return {
        "name": program.name,
        "claim": program.claim,
        "code": ended.code,
        "seconds": round(ended.seconds, 1),
        "as_expected": bool(re.search(program.prints, ended.output))
        and bool(ended.code) == program.fails,
        "explained": [finding.cause for finding in answer.root_causes] or [answer.verdict],
        "cause_expected": program.cause,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with (options.folder / "programs.jsonl").open("a", encoding="utf-8") as rows:
        for program in PROGRAMS:
            if options.names and program.name not in options.names:
                continue
            ended = run(program, options.python)
            (options.folder / f"{program.name}.log").write_text(ended.output, encoding="utf-8")
            found = row(program, ended)
            print(json.dumps(found), file=rows, flush=True)
            print(json.dumps(found), file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
