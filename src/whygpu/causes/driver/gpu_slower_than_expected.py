"""A GPU is far slower under load than its data sheet, or than its neighbours of the same model.

## Why it happens

The clocks are held down (heat, power, a limit that somebody has set), the memory runs at its idle
clock, or the PCIe link has become narrower or slower.

## What it looks like

Everything works. One machine, or one GPU of a machine, takes longer for the same work, and in a
distributed training all others wait for it.

`whygpu check --stress` measures copies within the memory of the GPU, copies from and to main
memory, and products of matrices. No GPU reaches the figures of a data sheet. Only a share that
healthy GPUs do not fall to is reported: below 60 % for the memory, 40 % for PCIe, 35 % for float32,
30 % for TF32, bfloat16 and float16, and 15 % for products on cards with a power limit of 150 W or
less. A GPU is also compared with the others of its model in the same machine, if there are three or
more: below 80 % of the median of the others it is reported, and below 60 % for copies from and to
main memory, which depend on the slot. If two GPUs differ that much, nobody can say which of them is
the odd one, and the answer says so. If somebody has lowered the power limit, and only products are
slow, that limit is named as the reason.

A GPU that other processes used during the test is not judged. Neither is a speed above the data
sheet: then the measurement or the figure of the data sheet is wrong.

## Fix

Look at the clocks and the reasons for slowing down while the GPU works; compare the power limit
with the default; check the slot, the fans and the power supply. A limit on power or clocks may be
intended: ask before you remove it.

## Fires on (machine)

An RTX A6000 at a third of the bandwidth of its memory.

```toml
[stress.0.test.rates.memory]
speeds = {lowest = 2.4e11, median = 2.5e11, highest = 2.6e11, repetitions = 16}
```

Of three GPUs of one model, one is much slower.

```toml
[driver.gpus.1]
pci_address = "0000:42:00.0"

[driver.gpus.2]
pci_address = "0000:43:00.0"

[stress.0]
number = 0

[stress.1]
number = 1

[stress.2.test.rates.tf32]
speeds = {lowest = 2.8e13, median = 2.9e13, highest = 3.0e13, repetitions = 28}
```

Somebody has lowered its power limit.

```toml
[driver.gpus.0.health]
power_limit_watts = 100
power_default_watts = 300

[stress.0.test.state]
slowdowns = ["power-cap"]

[stress.0.test.rates.bfloat16]
speeds = {lowest = 3.0e13, median = 3.1e13, highest = 3.3e13, repetitions = 28}
```

## Quiet on (machine)

A healthy GPU under load.

```toml
[stress.0]
number = 0
```

A little below the data sheet is normal.

```toml
[stress.0.test.rates.bfloat16]
speeds = {lowest = 7.0e13, median = 7.2e13, highest = 7.5e13, repetitions = 28}
```

## Cannot tell on (machine)

```toml
[stress.0.test.rates.memory]
speeds = {unknown = "the time for this GPU was over"}
```

A card whose data sheet is not on record, and no others of its kind.

```toml
[stress.0.test.rates.bfloat16]
peak = {absent = "figures for this card"}
```

Two GPUs of one model differ.

```toml
[driver.gpus.1]
pci_address = "0000:42:00.0"

[stress.0]
number = 0

[stress.1.test.rates.tf32]
speeds = {lowest = 2.8e13, median = 2.9e13, highest = 3.0e13, repetitions = 28}
```

Another program used it (`--stress-busy`).

```toml
[stress.0.test]
others = 1

[stress.0.test.rates.memory]
speeds = {lowest = 2.4e11, median = 2.5e11, highest = 2.6e11, repetitions = 16}
```

More than the memory of an RTX A6000 can do.

```toml
[stress.0.test.rates.memory]
speeds = {lowest = 2.4e12, median = 2.5e12, highest = 2.6e12, repetitions = 16}
```

## Sources

- <https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/dcgm-diagnostics.html>
- <https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html>
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from whygpu.causes.evidence.load_tests import by_reason, load_tests
from whygpu.model.cause import cause
from whygpu.model.derived import and_list, compared_as, display_name
from whygpu.model.driver import Gpu, GpuHealth
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy
from whygpu.model.observed import Known, Unknown
from whygpu.model.remedy import a_number, command_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.stress import PRODUCTS, LoadTest, Rate, RateName, speed_text
from whygpu.tables.gpu_speeds import least_share

CAUSE = cause("WG115", __name__, __doc__, severity="warning", effect="none")

_FEWEST_NEIGHBOURS = 2
"""Of two GPUs that differ, either may be the odd one."""
_OF_NEIGHBOURS = 0.8
_OF_NEIGHBOURS_BY_BUS = 0.6
_BUS: tuple[RateName, ...] = ("to-gpu", "from-gpu")
_MOST_OF_PEAK = 1.1
"""A boost clock can lie some percent above that of the data sheet."""
_LOWERED = 0.95
"""Of the default power limit. Rounding and firmware move it by a percent."""
_LOW_CLOCK = 0.7
"""Of the highest clock. Long products alone lower it to about 0.85 (measured on an H200)."""

Tested = tuple[Gpu, LoadTest]


class _Slow(NamedTuple):
    rate: RateName
    text: str


@CAUSE.on_machine
def detect(machine: Snapshot) -> Iterator[Finding | Gap]:
    alone: list[Tested] = []
    for item in load_tests(machine):
        if isinstance(item, Gap):
            yield item
            continue
        gpu, test = item
        yield from _not_measured(gpu, test)
        if isinstance(test.others, Known) and test.others.value > 0:
            yield Gap(
                f"whether GPU {gpu.number} ({gpu.name}) is slow: other processes computed on it "
                f"during the test ({test.others.value})"
            )
        else:
            alone.append(item)
    speeds = _speeds(alone)
    for gpu, test in alone:
        of_model = {rate.name: speeds[compared_as(gpu), rate.name] for rate in test.rates}
        slow = [
            complaint
            for rate in test.rates
            for complaint in _complaints(gpu, rate, of_model[rate.name])
        ]
        if slow:
            yield _finding(gpu, test, slow)
        nothing = [rate.name for rate in test.rates if not _is_judged(rate, of_model[rate.name])]
        if nothing:
            yield Gap(
                f"whether {and_list(nothing)} of GPU {gpu.number} ({gpu.name}) are slow: nothing "
                "to compare with is on record, and there are no two others of its kind here"
            )
    yield from _pairs(alone)


def _not_measured(gpu: Gpu, test: LoadTest) -> Iterator[Gap]:
    unknown = {
        rate.name: rate.speeds.reason for rate in test.rates if isinstance(rate.speeds, Unknown)
    }
    for names, reason in by_reason(unknown):
        yield Gap(f"the speed of {names} of GPU {gpu.number}: {reason}")
    for rate in test.rates:
        if not isinstance(rate.speeds, Known):
            continue
        share = rate.share
        measured = speed_text(rate.name, rate.speeds.value.median)
        if rate.speeds.value.median <= 0:
            yield Gap(f"the speed of {rate.name} of GPU {gpu.number}: {measured} is no speed")
        elif share is not None and share > _MOST_OF_PEAK and rate.name not in _BUS:
            # Main memory may be reached by another way than PCIe, such as NVLink.
            yield Gap(
                f"the speed of {rate.name} of GPU {gpu.number}: {measured} is {share:.0%} of its "
                "data sheet, so the measurement or whygpu's figure for this card is wrong"
            )


def _speeds(tested: Sequence[Tested]) -> dict[tuple[str, RateName], list[float]]:
    """The speeds of all GPUs of a model, in order."""
    found: dict[tuple[str, RateName], list[float]] = defaultdict(list)
    for gpu, test in tested:
        for rate in test.rates:
            if isinstance(rate.speeds, Known) and rate.speeds.value.median > 0:
                found[compared_as(gpu), rate.name].append(rate.speeds.value.median)
    for speeds in found.values():
        speeds.sort()
    return found


def _is_judged(rate: Rate, of_model: Sequence[float]) -> bool:
    """A speed that is compared with nothing has not passed. What was not measured has own gaps."""
    if not isinstance(rate.speeds, Known) or rate.speeds.value.median <= 0:
        return True
    return rate.share is not None or len(of_model) > _FEWEST_NEIGHBOURS


def _complaints(gpu: Gpu, rate: Rate, of_model: Sequence[float]) -> Iterator[_Slow]:
    """What is too slow about one rate. `of_model` has the speed of this GPU as well."""
    if not isinstance(rate.speeds, Known) or rate.speeds.value.median <= 0:
        return
    mine = rate.speeds.value.median
    share = rate.share
    if share is not None and share < least_share(rate.name, gpu.name):
        assert isinstance(rate.peak, Known)
        text = (
            f"{rate.name}: {speed_text(rate.name, mine)}, {share:.0%} of the "
            f"{speed_text(rate.name, rate.peak.value)} of {rate.peak.source}"
        )
        yield _Slow(rate.name, text)
        return
    usual = _median_of_others(of_model, mine)
    if usual is not None and mine < _bound(rate.name) * usual:
        text = (
            f"{rate.name}: {speed_text(rate.name, mine)}; its neighbours have "
            f"{speed_text(rate.name, usual)}"
        )
        yield _Slow(rate.name, text)


def _bound(name: RateName) -> float:
    return _OF_NEIGHBOURS_BY_BUS if name in _BUS else _OF_NEIGHBOURS


def _median_of_others(ordered: Sequence[float], mine: float) -> float | None:
    """Without making a list for each GPU: a hostile snapshot may have thousands."""
    others = len(ordered) - 1
    if others < _FEWEST_NEIGHBOURS:
        return None
    own = bisect_left(ordered, mine)

    def other(place: int) -> float:
        return ordered[place if place < own else place + 1]

    return (other((others - 1) // 2) + other(others // 2)) / 2


def _pairs(tested: Sequence[Tested]) -> Iterator[Gap]:
    """Two GPUs of one model, and no third, that differ as much as a slow one from the others."""
    models: dict[str, list[Tested]] = defaultdict(list)
    for item in tested:
        models[compared_as(item[0])].append(item)
    for name, both in models.items():
        if len(both) != 2:
            continue
        numbers = and_list([f"GPU {gpu.number}" for gpu, _ in both])
        rates = [{rate.name: rate for rate in test.rates} for _, test in both]
        for rate in rates[0]:
            pair = [of_gpu[rate].speeds for of_gpu in rates if rate in of_gpu]
            medians = [each.value.median for each in pair if isinstance(each, Known)]
            if len(medians) == 2 and 0 < min(medians) < _bound(rate) * max(medians):
                texts = and_list([speed_text(rate, each) for each in medians])
                yield Gap(
                    f"{numbers} ({name}) differ in {rate} ({texts}): of two, nobody can say which "
                    "one is the odd one"
                )


def _finding(gpu: Gpu, test: LoadTest, slow: Sequence[_Slow]) -> Finding:
    where = f"{display_name(test.framework)} {test.version} under load"
    limit = _lowered_limit(gpu) if all(each.rate in PRODUCTS for each in slow) else None
    first = slow[0].text
    if limit is None:
        message = f"GPU {gpu.number} ({gpu.name}) is much slower than it should be: {first}"
    else:
        lowered, default = limit
        message = (
            f"GPU {gpu.number} ({gpu.name}) is slow because its power limit is set to {lowered} W "
            f"and not to its default of {default} W: {first}"
        )
    state = _state(gpu, test)
    return CAUSE.finding(
        subject=MACHINE,
        message=message + (f"; {state}" if state else ""),
        evidence=tuple(Evidence("probe", where, each.text) for each in slow),
        remedies=tuple(_remedies(gpu, test, limit)),
        confidence="likely",
    )


def _remedies(gpu: Gpu, test: LoadTest, limit: tuple[int, int] | None) -> Iterator[Remedy]:
    if limit is not None:
        yield Remedy(
            "If nobody has lowered the power limit on purpose, set it to its default.",
            command_line("sudo nvidia-smi -i", a_number(gpu.number), "-pl", a_number(limit[1])),
        )
    elif _clock_is_low(gpu, test):
        yield Remedy(
            "If somebody has locked its clocks, and not on purpose, remove the lock.",
            command_line("sudo nvidia-smi -rgc -i", a_number(gpu.number)),
        )
    yield Remedy(
        "Look at its clocks, and at the reasons that hold them down, while it works.",
        command_line(
            "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE -i", a_number(gpu.number)
        ),
    )
    yield Remedy(
        "Test again when nothing else runs on the machine.",
        command_line("whygpu check --stress 30"),
    )


def _health(gpu: Gpu) -> GpuHealth | None:
    return gpu.health.value if isinstance(gpu.health, Known) else None


def _lowered_limit(gpu: Gpu) -> tuple[int, int] | None:
    """The power limit that somebody has set, and the default that it is below."""
    health = _health(gpu)
    if health is None:
        return None
    now, default = health.power_limit_watts, health.power_default_watts
    if not isinstance(now, Known) or not isinstance(default, Known):
        return None
    return (now.value, default.value) if now.value < _LOWERED * default.value else None


def _clock_is_low(gpu: Gpu, test: LoadTest) -> bool:
    """Far below the highest clock, and no reason was reported that would explain it."""
    health, clock, reasons = _health(gpu), test.state.clock_mhz, test.state.slowdowns
    if health is None or not isinstance(clock, Known) or not isinstance(reasons, Known):
        return False
    highest = health.max_clock_mhz
    return (
        not reasons.value
        and isinstance(highest, Known)
        and clock.value < _LOW_CLOCK * highest.value
    )


def _state(gpu: Gpu, test: LoadTest) -> str:
    """What NVML reported meanwhile that could be the reason."""
    state, health = test.state, _health(gpu)
    parts = []
    if isinstance(state.clock_mhz, Known):
        highest = health.max_clock_mhz if health else None
        of = f" of {highest.value}" if isinstance(highest, Known) else ""
        parts.append(f"its clock was {state.clock_mhz.value}{of} MHz")
    if isinstance(state.slowdowns, Known) and state.slowdowns.value:
        parts.append(f"it was slowed down by {', '.join(state.slowdowns.value)}")
    return " and ".join(parts)
