"""Run the planted programs under `whygpu run --profile` and compare the answers.

python -m benchmarks.idle                    what is named, for each program
python -m benchmarks.idle --cures torch_     also the gain of the cure, predicted and measured
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks.idle.cases import PLANTED, Planted
from tests.targets import folder

PROGRAMS = pathlib.Path(__file__).parent / "programs"
_WORK = ("computing", "unknown")


class Outcome(NamedTuple):
    case: Planted
    named: str
    """The category that the answer names; "computing" if it names none."""
    answer: dict[str, Any]

    @property
    def is_right(self) -> bool:
        return self.named == (self.case.bottleneck or "computing")


def profiled(case: Planted, *, cured: bool = False) -> dict[str, Any]:
    """The profile of one program, from the report of its run."""
    environ = {k: v for k, v in os.environ.items() if k not in ("CURED", "KERAS_BACKEND")}
    # Threads of PyTorch that wait for each other on a busy machine would hide everything else.
    environ["OMP_NUM_THREADS"] = "1"
    if case.backend:
        environ["KERAS_BACKEND"] = case.backend
    if cured:
        environ["CURED"] = "1"
    python = folder().absolute() / case.target / "bin" / "python"
    with tempfile.TemporaryDirectory() as made:
        report = pathlib.Path(made) / "report.json"
        whygpu = [sys.executable, "-I", "-m", "whygpu", "run", "--no-repair", "--quiet"]
        words = [*whygpu, "--device", "cpu", "--profile", "--report", str(report), "--"]
        done = subprocess.run(
            [*words, str(python), str(PROGRAMS / f"{case.program}.py")],
            env=environ,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"{case.program} failed:\n{done.stderr}")
        answer: dict[str, Any] = json.loads(report.read_text())["profile"]
    return answer


def outcome(case: Planted) -> Outcome:
    answer = profiled(case)
    if answer["verdict"] != "waiting":
        return Outcome(case, answer["verdict"], answer)
    named = next(each["category"] for each in answer["shares"] if each["category"] not in _WORK)
    return Outcome(case, named, answer)


def measured_gain(found: Outcome) -> float:
    """How many times faster the steps of the cured program are."""
    cured = profiled(found.case, cured=True)
    return float(found.answer["window"]["step_seconds"] / cured["window"]["step_seconds"])


def chosen(words: list[str]) -> Iterator[Planted]:
    for case in PLANTED:
        if not words or any(case.program.startswith(word) for word in words):
            yield case


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="beginnings of their names (default: all)")
    parser.add_argument("--cures", action="store_true", help="measure what the cure gains")
    options = parser.parse_args()
    print("| program | planted | named | share | predicted | measured |")
    print("| --- | --- | --- | ---: | ---: | ---: |", flush=True)
    wrong = 0
    for case in chosen(options.programs):
        found = outcome(case)
        wrong += not found.is_right
        name = f"{case.program} ({case.backend})" if case.backend else case.program
        share = sum(
            each["share"] for each in found.answer["shares"] if each["category"] == found.named
        )
        predicted = gain = ""
        if found.answer["gains"]:
            predicted = _predicted(found.answer["gains"][0])
        if options.cures and case.bottleneck:
            gain = f"{measured_gain(found):.1f} x"
        mark = "" if found.is_right else " (wrong)"
        planted = case.bottleneck or "nothing"
        print(
            f"| {name} | {planted} | {found.named}{mark} | {share * 100:.0f} % | {predicted} "
            f"| {gain} |",
            flush=True,
        )
    return 1 if wrong else 0


def _predicted(gain: dict[str, Any]) -> str:
    fast = gain["from_seconds"] / max(gain["to_low"], 1e-9)
    if gain["at_most"]:
        return f"at most {fast:.1f} x"
    return f"{gain['from_seconds'] / gain['to_high']:.1f} to {fast:.1f} x"


if __name__ == "__main__":
    sys.exit(main())
