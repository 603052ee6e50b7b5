"""Run the planted programs under `whygpu run --profile` and compare the answers.

python -m benchmarks.idle                          what is named, for each program
python -m benchmarks.idle --cures --only torch_    also the gain of the cure, predicted and measured
python -m benchmarks.idle --device gpu --cures --json rows.jsonl --seconds 1500 \\
    --python torch=/venvs/torch/bin/python --python tensorflow=/venvs/tf/bin/python \\
    --recordings recorded

Programs that have a row in the file of --json are not run again, so an experiment that was
interrupted continues with the same command. All programs are judged before any cure is measured.
"""

from __future__ import annotations

import argparse
import math
import pathlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks import machine
from benchmarks.idle import rows
from benchmarks.idle.cases import PLANTED, PLANTED_ON_GPU, Planted
from benchmarks.idle.measure import LONGEST, Place, ProgramFailed, compared, outcome
from benchmarks.idle.rows import Key, Row, key_of

TURNS = 2
SHORTEST = 15.0
"""Seconds: with less time than this left, no program is started."""


class Budget:
    """The time that all programs may take together."""

    def __init__(self, seconds: float) -> None:
        self.until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return self.until - time.monotonic()


class Experiment(NamedTuple):
    cases: Sequence[Planted]
    place: Place
    budget: Budget
    file: pathlib.Path | None
    known: dict[Key, Row]
    """What an earlier run has found; grows with each row."""

    def judge_all(self) -> None:
        """Those that failed before come last: they may fail again, and take long."""
        missing = [case for case in self.cases if not self._has_answer(case)]
        for case in sorted(missing, key=lambda case: key_of(case) in self.known):
            if self._is_over:
                return
            try:
                row = rows.named_row(outcome(case, self._place), self.place.device)
            except ProgramFailed as error:
                row = rows.failed_row(case, self.place.device, str(error))
            self._add(row)

    def measure_cures(self, turns: int) -> None:
        for case in self.cases:
            row = self.known.get(key_of(case))
            if not case.is_curable or row is None or row.answer is None or row.measured is not None:
                continue
            if self._is_over:
                return
            try:
                both = compared(
                    case, row.answer, self._place, turns=turns, until=self.budget.until - SHORTEST
                )
                row = rows.cured_row(row, case, both)
            except ProgramFailed as error:
                row = row._replace(failed=f"cured: {error}")
            self._add(row)

    def _has_answer(self, case: Planted) -> bool:
        row = self.known.get(key_of(case))
        return row is not None and row.answer is not None

    @property
    def _is_over(self) -> bool:
        return self.budget.left < SHORTEST

    @property
    def _place(self) -> Place:
        return self.place._replace(limit=min(self.place.limit, max(self.budget.left, SHORTEST)))

    def _add(self, row: Row) -> None:
        self.known[key_of(row)] = row
        if self.file is not None:
            rows.append(self.file, row)
        print(row.text, flush=True)
        if row.failed:
            print(
                f"{row.program} ({row.backend or row.target}): {row.failed}",
                file=sys.stderr,
                flush=True,
            )

    @property
    def rows(self) -> list[Row]:
        return [self.known[key_of(case)] for case in self.cases if key_of(case) in self.known]


def chosen(beginnings: Sequence[str], backend: str, device: str) -> Iterator[Planted]:
    for case in PLANTED if device == "cpu" else PLANTED_ON_GPU:
        if backend and case.backend not in ("", backend):
            continue
        if not beginnings or any(case.program.startswith(each) for each in beginnings):
            yield case


def runnable(cases: Sequence[Planted], place: Place) -> Iterator[Planted]:
    """Say of each interpreter once why its programs cannot run, and leave those out."""
    problems: dict[tuple[str, str, bool], str] = {}
    for case in cases:
        python, framework, keras = place.interpreter(case), case.framework, bool(case.backend)
        there = (python, framework, keras)
        if there not in problems:
            problems[there] = machine.why_unusable(python, framework, place.device, keras=keras)
            if problems[there] and list(problems.values()).count(problems[there]) == 1:
                print(f"left out: {problems[there]}", file=sys.stderr, flush=True)
        if not problems[there]:
            yield case


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="so begin their names"
    )
    parser.add_argument("--cures", action="store_true", help="measure what the cure gains")
    parser.add_argument("--turns", type=int, default=TURNS, help=f"of each cure (default: {TURNS})")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="[FRAMEWORK=]PATH",
        help="an interpreter that has the frameworks, or one of torch, tensorflow and jax",
    )
    parser.add_argument("--backend", default="", help="of Keras, only this one")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path, help="append each row to it")
    parser.add_argument("--limit", type=float, default=LONGEST, help="seconds for one run")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for everything")
    parser.add_argument(
        "--recordings",
        metavar="FOLDER",
        type=lambda word: pathlib.Path(word).absolute(),
        help="keep what the frameworks' profilers recorded, for tests that judge it again",
    )
    options = parser.parse_args()
    try:
        options.interpreters = machine.interpreters(options.python)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    return options


def main() -> int:
    options = parsed()
    budget = Budget(options.seconds)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    place = Place(options.device, options.interpreters, options.limit, options.recordings)
    wanted = list(chosen(options.only, options.backend, options.device))
    known = rows.read_rows(options.json, options.device) if options.json else {}
    with machine.alone(options.device):
        cases = list(runnable(wanted, place))
        experiment = Experiment(cases, place, budget, options.json, known)
        print(rows.HEADER, flush=True)
        experiment.judge_all()
        if options.cures:
            experiment.measure_cures(options.turns)
    found = experiment.rows
    print(f"\n{rows.table(found)}\n\n{rows.summary(found)}")
    missing = len(wanted) - len(found)
    if missing:
        print(f"not run: {missing} of {len(wanted)}")
    return 1 if missing or not all(row.is_right for row in found) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except machine.NotAlone as error:
        sys.exit(str(error))
