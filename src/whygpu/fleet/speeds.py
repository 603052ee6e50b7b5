"""GPUs that are slower than most of their model on other nodes. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from whygpu.model.derived import compared_as
from whygpu.model.fleet import GpuSpeed, ModelSpeed, NodeReport, SlowGpu
from whygpu.model.observed import Known
from whygpu.model.outside_text import excerpt, one_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.stress import RATES, RateName

FEWEST = 5
"""GPUs of one model. With fewer, it is not known which is the odd one."""
LEAST_GAP = 0.1
"""Of the median. Chips of one model differ by some percent, and so does each measurement."""
SPREADS = 5.0
"""How many spreads of the others below their median a GPU has to be."""
_SPREAD_OF_NORMAL = 1.4826
"""From the median of the distances to the standard deviation, if the values are normal."""
_MOST_GPUS = 64
"""Of one node. A hostile snapshot can have any number of them."""
_LONGEST_NAME = 80

Key = tuple[str, RateName]


def speeds_of(machine: Snapshot) -> tuple[GpuSpeed, ...]:
    """The speeds that were measured on a node.

    Without GPUs that other processes used meanwhile: those are slower and nothing is wrong.
    """
    gpus, stress = machine.driver.gpus, machine.stress
    if not isinstance(gpus, Known) or not isinstance(stress, Known):
        return ()
    names = {gpu.number: excerpt(one_line(compared_as(gpu)), _LONGEST_NAME) for gpu in gpus.value}
    return tuple(
        GpuSpeed(tested.number, names[tested.number], rate.name, rate.speeds.value.median)
        # A snapshot that names a GPU several times does not count several times.
        for tested in list({each.number: each for each in stress.value}.values())[:_MOST_GPUS]
        if isinstance(tested.test, Known) and tested.number in names
        if not (isinstance(tested.test.value.others, Known) and tested.test.value.others.value > 0)
        for rate in tested.test.value.rates[: len(RATES)]
        if isinstance(rate.speeds, Known) and rate.speeds.value.median > 0
    )


def compared_speeds(
    reports: Sequence[NodeReport],
) -> tuple[tuple[ModelSpeed, ...], tuple[SlowGpu, ...]]:
    """The usual speed of each model, and the GPUs that are slower; the slowest first."""
    groups: dict[Key, list[tuple[str, GpuSpeed]]] = defaultdict(list)
    for report in reports:
        for speed in report.speeds:
            groups[speed.model, speed.rate].append((report.node, speed))
    models: list[ModelSpeed] = []
    slow: list[SlowGpu] = []
    for (model, rate), found in sorted(groups.items()):
        values = sorted(speed.per_second for _, speed in found)
        middle = median(values)
        models.append(ModelSpeed(model, rate, len(values), values[0], middle, values[-1]))
        slow += _slow(found, middle)
    return tuple(models), tuple(sorted(slow, key=lambda gpu: (gpu.share, gpu.node, gpu.gpu)))


def _slow(found: Sequence[tuple[str, GpuSpeed]], middle: float) -> Iterator[SlowGpu]:
    """Median and distances from it are not moved by the odd ones, as mean and deviation are."""
    if len(found) < FEWEST:
        return
    spread = _SPREAD_OF_NORMAL * median(abs(speed.per_second - middle) for _, speed in found)
    bound = middle - max(SPREADS * spread, LEAST_GAP * middle)
    for node, speed in found:
        if speed.per_second < bound:
            yield SlowGpu(
                node, speed.gpu, speed.model, speed.rate, speed.per_second, middle, len(found)
            )
