"""The tests under load of each GPU, for the causes that judge them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from whygpu.model.derived import and_list
from whygpu.model.driver import Gpu
from whygpu.model.finding import Gap
from whygpu.model.observed import Known, Unknown, need
from whygpu.model.snapshot import Snapshot
from whygpu.model.stress import LoadTest, RateName


def load_tests(machine: Snapshot) -> Iterator[tuple[Gpu, LoadTest] | Gap]:
    """Each GPU that was put under load. One that should have been and was not is a gap.

    Without --stress, a cause that needs this does not apply.
    """
    all_tested = need(machine.stress)
    gpus = {gpu.number: gpu for gpu in need(machine.driver.gpus)}
    # Each GPU once, however often a snapshot names it.
    for tested in {each.number: each for each in all_tested}.values():
        gpu = gpus.get(tested.number)
        if gpu is None:
            yield Gap(
                f"GPU {tested.number} was tested under load, and the driver lists no such GPU"
            )
        elif isinstance(tested.test, Known):
            yield gpu, tested.test.value
        elif isinstance(tested.test, Unknown):
            yield Gap(f"GPU {gpu.number} ({gpu.name}) under load: {tested.test.reason}")


def by_reason(unknown: Mapping[RateName, str]) -> Iterator[tuple[str, str]]:
    """What shares a reason, in one text, and the reason: a test that ends early says it once."""
    for reason in dict.fromkeys(unknown.values()):
        yield and_list([name for name, why in unknown.items() if why == reason]), reason
