"""What a change would give, predicted from how the time of a step is spent.

Only changes that would help are offered. Each prediction is a range: its lower end is the limit
(perfect overlap, no cost of the change itself), its upper end allows for imperfect overlap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from whygpu.model.profile import Category, Gain
from whygpu.profiling import device_gains
from whygpu.profiling.attribution import Spent
from whygpu.profiling.step_costs import SMALLEST_SHARE, StepCosts

WORTH_IT = 1.05
"""A change has to make steps at least this much faster, by the cautious end of its range."""
IMPERFECT = 0.25
"""Of the shorter of two things that overlap, this much may not overlap."""
MOST_COMPILING = 0.95
"""Of a step: how long it takes without compiling was not seen."""
MOST_WORKERS = 16
MOST_WAITING = 4
"""Workers that wait for storage. How many it serves at once is not known."""
WORKS_HARD = 0.7
"""A worker that computes, or waits for a core, for more of the time is limited by the processor."""


def predicted_gains(costs: StepCosts) -> tuple[Gain, ...]:
    """Of removing what the GPU, or the CPU, waits for: the largest gain first."""
    return _worthwhile(costs, _OFFERS)


def computing_gains(costs: StepCosts) -> tuple[Gain, ...]:
    """Of computing faster."""
    return _worthwhile(costs, device_gains.COMPUTING)


def _worthwhile(
    costs: StepCosts, offers: Sequence[Callable[[StepCosts], Iterator[Gain]]]
) -> tuple[Gain, ...]:
    if costs.step <= 0:
        return ()
    found = [
        gain
        for offer in offers
        for gain in offer(costs)
        if gain.at_most or gain.from_seconds / max(gain.to_high, 1e-9) >= WORTH_IT
    ]
    return tuple(sorted(found, key=lambda gain: gain.to_low))


def _overlapped(costs: StepCosts, change: str, assuming: str, longest: float, cpu: float) -> Gain:
    """The input is prepared while the step computes. All of it shares the cores of the machine.

    If other programs use them, there may be no more for this one than it has already.
    """
    rest = costs.rest
    low = max(costs.shortest_rest, longest, (cpu + costs.rest_cpu) / costs.cores)
    high = max(low, rest) + IMPERFECT * min(rest, longest)
    # Where the thread waits for a core, work takes as much longer than its processor time.
    wanted = cpu + costs.rest_cpu + costs.crowded * costs.step
    high = max(high, wanted / costs.usable_cores)
    return Gain(change, assuming, costs.step, low, min(high, costs.step))


def _from_input(costs: StepCosts) -> Iterator[Gain]:
    if not costs.matters(costs.seconds("input")) or not costs.input_sources:
        return
    source = max(costs.input_sources, key=lambda name: costs.input_sources[name])
    spent = costs.input_work
    if source == "one process":
        wanted = _wanted_workers(costs, spent)
        yield _overlapped(
            costs,
            f"num_workers={wanted} in the DataLoader",
            f"the data can be prepared in {wanted} other processes on {costs.cores} cores",
            spent.seconds / wanted,
            spent.thread_seconds,
        )
    elif source == "workers":
        yield from _more_workers(costs)
    elif source == "starting workers":
        remaining = costs.step - costs.input_sources[source]
        yield Gain(
            "persistent_workers=True in the DataLoader",
            "the workers of the first epoch can serve the later ones",
            costs.step,
            remaining,
            remaining + IMPERFECT * costs.input_sources[source],
            # The pages that a process shares with a new one are copied when it writes to them, and
            # the new ones take cores while they start.
            or_more=True,
        )
    elif source == "tf.data":
        yield _tf_data(costs, spent)
    elif source == "another thread":
        yield Gain(
            "let more threads or processes prepare batches",
            "they can work at the same time; what limits them was not measured",
            costs.step,
            costs.shortest_rest,
            costs.step,
            at_most=True,
        )
    elif source != "keras arrays":
        # Of arrays in memory, Keras makes the batches as fast as another pipeline could.
        yield _ahead(costs, spent, of_keras=source == "keras data")


def _ahead(costs: StepCosts, spent: Spent, *, of_keras: bool) -> Gain:
    """Batches that the program makes itself, one after the other, are made ahead of the step."""
    if of_keras:
        # On TensorFlow, another thread calls Python for them, and the main one only waits.
        spent = spent._replace(thread_seconds=max(spent.thread_seconds, spent.process_seconds))
    wanted = _wanted_workers(costs, spent)
    kind = ("process", "processes") if _works(costs, spent) else ("thread", "threads")
    who = f"another {kind[0]}" if wanted == 1 else f"{wanted} other {kind[1]}"
    how = f" (workers={wanted} of a keras.utils.PyDataset)" if of_keras else ""
    return _overlapped(
        costs,
        f"prepare batches in {who} while the step computes{how}",
        "a batch does not depend on the result of the step before it",
        spent.seconds / wanted,
        spent.thread_seconds,
    )


def _works(costs: StepCosts, spent: Spent) -> bool:
    """Whether it takes, or waits for, a core. If not, the program waits for something else."""
    return spent.thread_seconds + costs.crowded * spent.seconds > spent.seconds / 2


def _wanted_workers(costs: StepCosts, spent: Spent) -> int:
    """As many as keep up with the step. More than there are cores can still wait together."""
    enough = math.ceil(spent.seconds / max(costs.rest, 1e-9)) + 1
    return max(1, min(enough, costs.cores if _works(costs, spent) else MOST_WAITING, MOST_WORKERS))


def _more_workers(costs: StepCosts) -> Iterator[Gain]:
    """Workers deliver a batch each `step` seconds together, and the step waits for them."""
    count = len(costs.workers)
    if not count:
        return
    busy = sum(costs.workers) / count
    needed = math.ceil(count * costs.step / max(costs.rest, 1e-9))
    works = busy + costs.workers_waited >= WORKS_HARD
    most = costs.cores if works else 4 * count
    wanted = min(needed, most)
    if wanted <= count:
        return
    if works:
        assuming = f"each of the {count} workers needs a core, and {costs.cores} are there"
    else:
        assuming = f"the {count} workers wait for storage or a lock, which serves more of them"
    yield _overlapped(
        costs,
        f"num_workers={wanted} in the DataLoader",
        assuming,
        costs.step * count / wanted,
        sum(costs.workers) * costs.step,
    )


def _tf_data(costs: StepCosts, spent: Spent) -> Gain:
    cores = costs.cores
    if costs.python_stage:
        return Gain(
            f"do the work of {costs.python_stage} in TensorFlow operations, or prepare data before",
            "parallel calls would not help: Python's lock lets one Python function run at a time, "
            "unless the function releases it for most of its time",
            costs.step,
            costs.shortest_rest,
            costs.step,
            at_most=True,
        )
    if costs.parallel_stages:
        return Gain(
            "dataset.cache() after the costly stage, if its result fits in memory",
            "the stage gives the same elements in each epoch",
            costs.step,
            costs.rest,
            costs.step,
            at_most=True,
        )
    gain = _overlapped(
        costs,
        "map(..., num_parallel_calls=tf.data.AUTOTUNE) and prefetch(tf.data.AUTOTUNE)",
        f"elements can be prepared independently, on {cores} cores",
        spent.seconds / cores,
        0.0,
    )
    # How much of the waiting is the processor's is not known: then it does not get faster.
    return gain._replace(to_high=max(gain.to_high, costs.rest, spent.seconds))


def _from_compilation(costs: StepCosts) -> Iterator[Gain]:
    seconds = costs.seconds("compilation")
    if costs.matters(seconds):
        # A function that was traced again is then optimised, where no frame shows it: at best, all
        # of such a call is due to that, except what the step itself computes.
        longest = min(max(seconds, costs.compiled_calls), MOST_COMPILING * costs.step)
        yield Gain(
            costs.compilation_cure,
            "the steps compile again because of that, and then no longer do",
            costs.step,
            costs.step - max(seconds, longest),
            costs.step - 0.8 * seconds,
            or_more=True,
        )


class _Rare(NamedTuple):
    """Work that need not be done in each step."""

    category: Category
    change: str
    saved: tuple[float, float]
    """The part of its time that the change saves: at least, at most. What is done rarely may cost
    less each time: files are written while the program goes on."""
    rest: float = 1.0
    """What the rest of a step then takes, at best, of what it took."""


_RARE = (
    _Rare("evaluation", "evaluate half as often", (0.4, 0.5)),
    # A save fills the caches with what it writes, and takes new memory: the next steps are slower.
    # The same step took 6 to 20 % more processor time after it.
    _Rare("checkpointing", "save a tenth as often", (0.72, 1.0), rest=0.8),
    _Rare("logging", "log every tenth step", (0.72, 1.0)),
)


def _from_rare_work(costs: StepCosts) -> Iterator[Gain]:
    for each in _RARE:
        seconds = costs.seconds(each.category)
        if costs.matters(seconds):
            least, most = each.saved
            low = (costs.step - seconds) * each.rest + (1 - most) * seconds
            high = costs.step - least * seconds
            assuming = "the rest of a step takes as long as it did here"
            if each.rest < 1:
                assuming += ", or less because the caches keep its data"
            yield Gain(each.change, assuming, costs.step, low, high, or_more=each.rest < 1)


def _from_own_code(costs: StepCosts) -> Iterator[Gain]:
    seconds = costs.seconds("program")
    if seconds >= 2 * SMALLEST_SHARE * costs.step:
        yield Gain(
            "take this code out of the step, or make it work on whole arrays",
            "how much faster it can become is not known, and the rest may become faster as well",
            costs.step,
            # Without this code, the program launches a step while the GPU still computes another.
            max(
                costs.step - max(seconds, costs.own_code) - costs.seconds("launches"),
                costs.fastest,
            ),
            costs.step,
            at_most=True,
            # Meanwhile the framework's threads fall asleep, and the caches forget its data.
            or_more=True,
        )


_OFFERS = (
    _from_input,
    _from_compilation,
    _from_rare_work,
    _from_own_code,
    *device_gains.WAITING,
    *device_gains.COMPUTING,
)
