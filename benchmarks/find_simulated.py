"""The search for a batch size on simulated steps: how close it comes, and in how many trials.

    python -m benchmarks.find_simulated [--seeds 400] [--shared] [--costs xla]
                                        [--estimate 0.1] [--set batch_aim._GROWTH=8 ...]

Memory is a formula of the batch, in fourteen families of steps: with noise, bends, a GPU allocator
that wastes a part, and so on. The constants of memory/batch_search.py, batch_aim.py and forecast.py
were chosen on these families. --set shows what another value of one of them would do.

The seconds are those of the whole search, by what parts of a trial take (--costs). They compare
searches with each other; no machine was measured for them.
"""

from __future__ import annotations

import argparse
import ast
import math
import random
import statistics
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import NamedTuple

from whygpu.memory.answer import answer
from whygpu.memory.batch_search import MOST_TRIALS, Stop, next_move
from whygpu.model.batch import BatchOutcome, Gauge, GaugeName, SearchWishes, Trial

MIB, GIB = 1 << 20, 1 << 30
WISHES = SearchWishes(start=8, largest=None, multiple_of=1, trials=MOST_TRIALS, timeout=600.0)
CLOSE = 0.05
"""An answer is close if it is at most this part below or above the true largest batch."""


class Costs(NamedTuple):
    """What a trial takes, in seconds."""

    start: float
    """Of the first process."""
    next_start: float
    """Of a later one, whose imports are done while others run."""
    compiling: float
    """For each batch, in any process."""
    steps: float
    """With the largest batch that fits."""

    def of(self, batch: int, largest: int, *, alone: bool, first: bool) -> float:
        start = (self.start if first else self.next_start) if alone else 0.0
        return start + self.compiling + self.steps * batch / max(largest, 1)


COSTS = {"plain": Costs(11.0, 5.0, 0.3, 1.0), "xla": Costs(11.0, 5.0, 20.0, 0.5)}
"""Without a compiler, and with one that tries algorithms for each batch, as Keras on an H200 did
(docs/tensorflow-on-gpu.md)."""


class Step(NamedTuple):
    """A simulated step."""

    needs: Callable[[int], float]
    limit: float
    before: float
    gauge: GaugeName = "memory"
    measured: Callable[[int], float] | None = None
    """What the counters show of a batch that fits, if it is not what it needs."""
    measured_up_to: float = 1.0
    """Times the limit: what needs more is stopped before it is measured."""
    mean: Callable[[int], float] | None = None
    """What it needs on average, if `needs` differs from call to call."""

    def trial(self, batch: int, seconds: float, *, alone: bool = True) -> Trial:
        needs = self.needs(batch)
        fits = needs <= self.limit
        known = fits or needs <= self.limit * self.measured_up_to
        peak = int(self.measured(batch) if fits and self.measured is not None else needs)
        gauge = Gauge(self.gauge, int(self.before), peak, peak, int(self.limit))
        return Trial(
            batch=batch,
            outcome="fits" if fits else "does-not-fit",
            how="",
            gauges=(gauge,) if known else (),
            steps=3 if known else 0,
            step_seconds=0.001 if fits else None,
            seconds=seconds,
            alone=alone,
        )

    def largest(self) -> int:
        """The true answer, by bisection."""
        needs = self.mean or self.needs
        low, high = 0, 1
        while needs(high) <= self.limit:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if needs(middle) <= self.limit else (low, middle)
        return low


def line(numbers: random.Random, gauge: GaugeName) -> Step:
    """Memory is an affine function of the batch."""
    limit = 2 ** numbers.uniform(29, 37)
    base = numbers.uniform(0.02, 0.7) * limit
    slope = (limit - base) / 10 ** numbers.uniform(0.5, 4.5)
    return Step(lambda batch: base + slope * batch, limit, numbers.uniform(0.3, 1) * base, gauge)


def bent(numbers: random.Random, gauge: GaugeName) -> Step:
    """A line that bends by up to a tenth, noise of 0.2 %, and waste in a GPU's allocator."""
    step = line(numbers, gauge)
    most, bend = step.largest() + 1, numbers.uniform(-0.1, 0.1)
    waste = 1 + (numbers.choice([0.0, 0.02, 0.05]) if gauge == "gpu" else 0.0)
    base = step.needs(0)

    def needs(batch: int) -> float:
        rise = step.needs(batch) - base
        return waste * (base + rise * (1 + bend * min(batch / most, 1.5)))

    def measured(batch: int) -> float:
        return needs(batch) / waste * (1 + numbers.gauss(0.0, 0.002))

    return step._replace(needs=needs, measured=measured)


def noisy(numbers: random.Random, noise: float, known: float) -> Step:
    """What a step takes differs from run to run, as main memory does."""
    limit = numbers.uniform(1, 3) * GIB
    base = limit * numbers.uniform(0.2, 0.6)
    slope = (limit - base) / 10 ** numbers.uniform(1.5, 3.5)
    before = 0.95 * base

    def mean(batch: int) -> float:
        return base + slope * batch

    def needs(batch: int) -> float:
        return mean(batch) + (mean(batch) - before) * numbers.gauss(0.0, noise)

    return Step(needs, limit, before, measured_up_to=known, mean=mean)


def jump(numbers: random.Random) -> Step:
    """Memory jumps at one batch size, by a tenth of the limit."""
    step = line(numbers, numbers.choice(["memory", "gpu"]))
    at = int(step.largest() * numbers.uniform(0.5, 1.0)) + 1
    more = 0.1 * step.limit
    return step._replace(needs=lambda batch: step.needs(batch) + (more if batch >= at else 0))


def drop(numbers: random.Random) -> Step:
    """From some batch on malloc returns arrays at once, so that a larger batch takes less."""
    base, slope = 400 * MIB, numbers.uniform(2, 8) * MIB
    limit = base + slope * numbers.uniform(60, 400)
    at = int((limit - base) / slope * numbers.uniform(0.6, 1.2))
    saved = numbers.uniform(0.75, 0.95)

    def needs(batch: int) -> float:
        return base + slope * batch * (1 if batch < at else saved)

    return Step(needs, limit, 0.95 * base, measured_up_to=1.25)


def hidden(numbers: random.Random) -> Step:
    """An optimizer's update takes more than small batches do."""
    limit, before = numbers.uniform(10, 60) * GIB, numbers.uniform(0.5, 3) * GIB
    update, slope = numbers.uniform(0.3, 1) * before, numbers.uniform(0.2, 20) * MIB
    return Step(lambda batch: before + max(update, slope * batch), limit, before, "gpu")


def saving(numbers: random.Random) -> Step:
    """A compiler that saves memory when it must, and requests it in one piece (XLA)."""
    limit, share = 7 * GIB, numbers.uniform(0.5, 0.8)
    before = 0.01 * limit

    def measured(batch: int) -> float:
        freely = before + 11 * MIB * batch
        return freely if freely < 0.93 * limit else limit * numbers.uniform(0.85, 0.95)

    def needs(batch: int) -> float:
        return before + share * 11 * MIB * batch

    return Step(needs, limit, before, "gpu", measured, measured_up_to=math.inf)


def uncounted(numbers: random.Random) -> Step:
    """Libraries need workspaces near the limit that the counters of small batches do not show."""
    step = line(numbers, "gpu")
    more = 1 + numbers.uniform(0.1, 1.5)
    base = step.needs(0)
    return step._replace(
        needs=lambda batch: base + more * (step.needs(batch) - base), measured=step.needs
    )


def overcounted(numbers: random.Random) -> Step:
    """The counters show up to five times what a step needs, and never more than there is: libraries
    use memory while there is some, and do with less."""
    return _misjudged(numbers, 2 ** -numbers.uniform(0.1, math.log2(5)))


def undercounted(numbers: random.Random) -> Step:
    """A step needs up to five times what the counters of smaller ones show."""
    return _misjudged(numbers, 2 ** numbers.uniform(0.1, math.log2(5)))


def _misjudged(numbers: random.Random, times: float) -> Step:
    """A step that needs this many times what is shown. Some take memory in pieces of 128 MiB, some
    take a third more from half of the limit on, as with another algorithm."""
    step = line(numbers, "gpu")
    base, slope = step.needs(0), times * (step.needs(1) - step.needs(0))
    piece = numbers.choice([1, 128 * MIB]) if slope > MIB else 1
    more = numbers.choice([1.0, 1.3])

    def needs(batch: int) -> float:
        rise = slope * batch
        return base + math.ceil((more if rise > step.limit / 2 else 1) * rise / piece) * piece

    def measured(batch: int) -> float:
        return min(step.needs(batch), numbers.uniform(0.9, 0.99) * step.limit)

    return step._replace(needs=needs, measured=measured)


FAMILIES: dict[str, Callable[[random.Random], Step]] = {
    "a line, main memory": lambda numbers: line(numbers, "memory"),
    "a line, GPU": lambda numbers: line(numbers, "gpu"),
    "bent, main memory": lambda numbers: bent(numbers, "memory"),
    "bent, GPU": lambda numbers: bent(numbers, "gpu"),
    "noise of 1 %, --limit": lambda numbers: noisy(numbers, 0.01, 1.25),
    "noise of 3 %, --limit": lambda numbers: noisy(numbers, 0.03, 1.25),
    "noise of 1 %, no --limit": lambda numbers: noisy(numbers, 0.01, 1.0),
    "a jump": jump,
    "larger takes less": drop,
    "hidden by the update": hidden,
    "a compiler that saves": saving,
    "uncounted workspaces": uncounted,
    "counters show too much": overcounted,
    "counters show too little": undercounted,
}


class Row(NamedTuple):
    close: float
    """Part of the searches whose answer is close."""
    off: float
    """How far the answers are from the truth, on average."""
    trials: float
    unsettled: float
    """Part of the searches that used up their trials."""
    seconds: float


class Searched(NamedTuple):
    batch: int
    trials: int
    outcome: BatchOutcome
    seconds: float


def searched(
    step: Step, truth: int, costs: Costs, wishes: SearchWishes, *, shared: bool
) -> Searched:
    """`shared`: on a GPU, trials share a process if they may."""
    trials: list[Trial] = []
    while True:
        move = next_move(trials, wishes)
        if isinstance(move, Stop):
            result = answer("step", trials, move.reason)
            seconds = sum(trial.seconds for trial in trials)
            return Searched(result.batch or 0, len(trials), result.outcome, seconds)
        alone = not (shared and step.gauge == "gpu" and trials) or move.alone
        seconds = costs.of(move.batch, truth, alone=alone, first=not trials)
        trials.append(step.trial(move.batch, seconds, alone=alone))


def estimated(step: Step, truth: int, error: float | None, seed: int) -> SearchWishes:
    """The wishes with an estimate of what a sample needs, which is off by this much, on average."""
    if error is None or step.gauge != "gpu":
        return WISHES
    needs = step.mean or step.needs
    sample = (needs(max(truth, 2)) - needs(1)) / (max(truth, 2) - 1)
    return WISHES._replace(sample_bytes=sample * math.exp(random.Random(seed).gauss(0.0, error)))


def row_of(
    make: Callable[[random.Random], Step],
    seeds: int,
    costs: Costs,
    error: float | None,
    *,
    shared: bool,
) -> Row:
    found: list[Searched] = []
    off: list[float] = []
    for seed in range(seeds):
        step = make(random.Random(seed))
        truth = step.largest()
        wishes = estimated(step, truth, error, seed)
        found.append(searched(step, truth, costs, wishes, shared=shared))
        wrong = abs(found[-1].batch - truth)
        off.append(0.0 if wrong <= 1 else min(wrong / truth, 1.0))
    return Row(
        close=statistics.fmean(each <= CLOSE for each in off),
        off=statistics.fmean(off),
        trials=statistics.fmean(each.trials for each in found),
        unsettled=statistics.fmean(each.outcome == "unsettled" for each in found),
        seconds=statistics.fmean(each.seconds for each in found),
    )


def rows(
    seeds: int, costs: Costs, error: float | None, *, shared: bool
) -> Iterator[tuple[str, Row]]:
    for name, make in FAMILIES.items():
        yield name, row_of(make, seeds, costs, error, shared=shared)


def change(setting: str) -> None:
    """batch_aim._GROWTH=8."""
    name, _, value = setting.partition("=")
    module, _, constant = name.partition(".")
    target = import_module(f"whygpu.memory.{module}")
    if not hasattr(target, constant):
        raise SystemExit(f"{module} has no {constant}")
    setattr(target, constant, ast.literal_eval(value))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=400)
    options.add_argument("--set", action="append", default=[], metavar="MODULE.NAME=VALUE")
    options.add_argument("--shared", action="store_true", help="trials on a GPU share a process")
    options.add_argument("--costs", choices=COSTS, default="plain")
    options.add_argument(
        "--estimate", type=float, metavar="ERROR", help="on a GPU, a sample is estimated: 0.1"
    )
    chosen = options.parse_args()
    for setting in chosen.set:
        change(setting)
    print(f"{'family':26} close   off    trials  unsettled  seconds")
    costs = COSTS[chosen.costs]
    found = list(rows(chosen.seeds, costs, chosen.estimate, shared=chosen.shared))
    means = Row(*(statistics.fmean(part) for part in zip(*(row for _, row in found), strict=True)))
    for name, row in [*found, ("all", means)]:
        print(
            f"{name:26} {row.close:6.1%} {row.off:6.2%} {row.trials:6.2f} {row.unsettled:10.1%}"
            f" {row.seconds:8.0f}"
        )


if __name__ == "__main__":
    main()
