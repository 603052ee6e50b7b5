"""A GPU compared with its neighbours, also if there are thousands."""

from __future__ import annotations

import time
from statistics import median

from hypothesis import given
from hypothesis import strategies as some

from tests.cases import each
from tests.kit import command_of, machine, run
from whygpu.causes.driver.gpu_slower_than_expected import CAUSE, _median_of_others
from whygpu.model.observed import Known


@given(some.lists(some.integers(1, 9).map(float), min_size=3, max_size=9), some.data())
def test_the_median_of_the_others(values: list[float], data: some.DataObject) -> None:
    place = data.draw(some.integers(0, len(values) - 1))
    others = values[:place] + values[place + 1 :]
    assert _median_of_others(sorted(values), values[place]) == median(others)


def test_of_two_nobody_is_the_odd_one() -> None:
    assert _median_of_others([5.0], 5.0) is None
    assert _median_of_others([1.0, 5.0], 1.0) is None


SLOW = "{lowest = 3.0e13, median = 3.1e13, highest = 3.3e13, repetitions = 28}"
"""A fifth of what an RTX A6000 promises in bfloat16."""
CAPPED = f"""
[driver.gpus.0.health]
power_limit_watts = 100
power_default_watts = 300

[stress.0.test.rates.bfloat16]
speeds = {SLOW}
"""


def test_a_lowered_power_limit_is_the_reason_for_slow_products() -> None:
    (found,) = run(CAUSE, machine(CAPPED)).findings
    assert (
        "because its power limit is set to 100 W and not to its default of 300 W" in found.message
    )
    assert "-i 0 -pl 300" in str(command_of(found.remedies[0]))


def test_it_is_not_the_reason_for_slow_memory() -> None:
    slow_memory = f"{CAPPED}\n[stress.0.test.rates.memory]\nspeeds = {SLOW.replace('e13', 'e10')}"
    (found,) = run(CAUSE, machine(slow_memory)).findings
    assert "power limit" not in found.message
    assert "much slower than it should be: memory" in found.message


def test_clocks_that_are_low_without_a_reason_may_be_locked() -> None:
    locked = f"""
        [driver.gpus.0.health]
        max_clock_mhz = 2100
        [stress.0.test.state]
        clock_mhz = 600
        slowdowns = []
        [stress.0.test.rates.bfloat16]
        speeds = {SLOW}
    """
    (found,) = run(CAUSE, machine(locked)).findings
    assert "its clock was 600 of 2100 MHz" in found.message
    assert "-rgc -i 0" in str(command_of(found.remedies[0]))


def test_a_test_that_ended_early_is_said_once() -> None:
    outcome = run(
        CAUSE,
        machine("""
            [stress.0.test.rates.memory]
            speeds = {unknown = "SIGSEGV"}
            [stress.0.test.rates.tf32]
            speeds = {unknown = "SIGSEGV"}
        """),
    )
    assert outcome.reasons == ("the speed of memory and tf32 of GPU 0: SIGSEGV",)


@each("speed", ["0.0", "-5.0e11"])
def test_a_speed_of_nothing_is_no_speed(speed: str) -> None:
    wrong = f"lowest = {speed}, median = {speed}, highest = {speed}, repetitions = 1"
    outcome = run(CAUSE, machine(f"[stress.0.test.rates.memory]\nspeeds = {{{wrong}}}"))
    assert outcome.findings == ()
    assert "is no speed" in outcome.reasons[0]


def test_thousands_of_gpus_take_no_minutes() -> None:
    """Only a hostile snapshot has that many."""
    one = machine("[stress.0]\nnumber = 0")
    assert isinstance(one.driver.gpus, Known)
    assert isinstance(one.stress, Known)
    (gpu,), (tested,) = one.driver.gpus.value, one.stress.value
    numbers = range(3000)
    many = one._replace(
        driver=one.driver._replace(
            gpus=Known(tuple(gpu._replace(number=number) for number in numbers), "hostile")
        ),
        stress=Known(tuple(tested._replace(number=number) for number in numbers), "hostile"),
    )
    began = time.process_time()
    assert run(CAUSE, many).status == "passed"
    assert time.process_time() - began < 5


OTHERS = """
[driver.gpus.1]
pci_address = "0000:42:00.0"
[driver.gpus.2]
pci_address = "0000:43:00.0"
[stress.1]
number = 1
[stress.2]
number = 2
"""
PART = "".join(
    f"""
[stress.0.test.rates.{name}]
peak = {{absent = "data sheets of MIG instances"}}
speeds = {SLOW}
"""
    for name in ("memory", "to-gpu", "from-gpu", "float32", "tf32", "bfloat16")
)


def test_an_instance_of_mig_is_not_compared_with_whole_gpus() -> None:
    split = "[driver.gpus.0]\nmig = true\n[driver.gpus.0.health]\nmig_layout = ['MIG 1g.10gb']\n"
    assert run(CAUSE, machine(PART + OTHERS)).findings
    outcome = run(CAUSE, machine(split + PART + OTHERS))
    assert outcome.findings == ()
    assert "nothing to compare with" in outcome.reasons[0]


def test_a_speed_that_is_compared_with_nothing_has_not_passed() -> None:
    alone = run(CAUSE, machine(PART))
    assert alone.status == "undetermined"
    rates = "memory, to-gpu, from-gpu, float32, tf32 and bfloat16"
    assert alone.reasons[0].startswith(f"whether {rates} of GPU 0")
