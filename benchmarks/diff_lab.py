"""Does `whygpu diff` name the fault? Every machine of the fault lab against a healthy one.

    python -m benchmarks.diff_lab
    python -m benchmarks.diff_lab cudnn-missing tensorflow-2.21-as-published

The good machine has a GPU, a driver (the stub) and every library; the bad one is a scenario of
tests/lab, which starts from the same environment. Both are examined by their files, without running
frameworks. For each root cause that only the bad machine has, the answer must name differences that
bring it about; the table shows which.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.lab.bench import Bench
from tests.lab.driver import NoCompiler
from tests.lab.scenario import Scenario, before_commands, check, lay_out
from tests.lab.scenarios import every_scenario
from tests.lab.wheels import NotFetched
from whygpu import diff
from whygpu.model.codec import decode
from whygpu.model.snapshot import Snapshot

HEALTHY = "gpu-and-every-library"


class Row(NamedTuple):
    scenario: str
    cause: str
    because: str
    """The differences that bring it about, or why the answer cannot tell."""
    named: bool


def seen(scenario: Scenario) -> Snapshot:
    """The machine of a scenario, by its files."""
    with tempfile.TemporaryDirectory(prefix="whygpu-lab-") as folder:
        before = before_commands(scenario, Path(folder))
        bench = Bench(scenario.target, Path(folder))
        try:
            lay_out(scenario, bench)
            report, _ = check(scenario, bench, before, probe=False)
        finally:
            bench.close()
    snapshot: Snapshot = decode(Snapshot, report["snapshot"])
    return snapshot


def rows(scenario: Scenario, good: Snapshot) -> Iterator[Row]:
    answer = diff(good, seen(scenario))
    for reason in answer.reasons:
        if reason.present != "after":
            continue
        finding = reason.finding
        cause = ", ".join(reason.frameworks) if finding is None else finding.cause
        sets = [
            " and ".join(answer.differences[place].name for place in chosen)
            for chosen in reason.sets
        ]
        because = " or ".join(sets) or f"cannot tell: {reason.unexplained}"
        yield Row(scenario.name, cause, because, bool(sets))


def main(names: Sequence[str]) -> None:
    scenarios = {each.name: each for each in every_scenario() if not each.slow}
    healthy = scenarios[HEALTHY]
    good = seen(healthy)
    chosen = [
        each
        for each in scenarios.values()
        if each.target == healthy.target and each.roots
        if not names or each.name in names
    ]
    print("| machine | root cause | because of |")
    print("| --- | --- | --- |")
    found: list[Row] = []
    unseen: list[str] = []
    for scenario in chosen:
        try:
            new = list(rows(scenario, good))
        except (NoCompiler, NotFetched) as reason:
            print(f"| {scenario.name} | | not tried: {reason} |")
            continue
        if not new:
            unseen.append(scenario.name)
        for row in new:
            print(f"| {row.scenario} | {row.cause} | {row.because} |", flush=True)
        found += new
    named = sum(row.named for row in found)
    print(f"\n{len(chosen)} machines, {len(found)} new root causes or verdicts, {named} explained")
    print(f"without a new cause by their files alone: {', '.join(unseen) or 'none'}")


if __name__ == "__main__":
    main(sys.argv[1:])
