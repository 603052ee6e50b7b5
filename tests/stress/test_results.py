"""What a load test has sent becomes facts, however it ended."""

from __future__ import annotations

from tests.cases import each
from tests.kit import machine
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.stress import LoadTest, StressedGpu
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import (
    StressBeginMessage,
    StressEndMessage,
    StressGpu,
    StressRateMessage,
    StressRefusedMessage,
    StressResultMessage,
    StressStateMessage,
    StressTryMessage,
    TaskMessage,
)
from whygpu.stress.choosing import LoadPlan
from whygpu.stress.results import stressed
from whygpu.stress.testing import results_of_all

ADDRESS = "0000:41:00.0"
OTHER = "0000:42:00.0"
TWO_GPUS = machine(f'[driver.gpus.1]\npci_address = "{OTHER}"')


def whole(address: str = ADDRESS) -> tuple[TaskMessage, ...]:
    return (
        StressTryMessage(address),
        StressBeginMessage(address, "2.11.0"),
        StressRateMessage(address, "memory", (6e11, 7e11, 6.5e11), "", True),
        StressStateMessage(address, "memory", 210, 90000, 40, 0, 1, 16),
        StressResultMessage(address, "memory", True, ""),
        StressRateMessage(address, "to-gpu", (2.5e10,), "", True),
        StressStateMessage(address, "to-gpu", 900, None, 41, 0, 4, 16),
        StressResultMessage(address, "to-gpu", None, "MemoryError: "),
        StressRateMessage(address, "from-gpu", (), "RuntimeError: no", True),
        StressRateMessage(address, "float32", (2e13, 2.2e13), "", True),
        StressStateMessage(address, "float32", 1500, 299600, 70, 0x24, 4, 16),
        StressResultMessage(address, "float32", False, "1 of 4 numbers differ between two runs"),
        StressRateMessage(address, "float16", (), "it has bfloat16", False),
        StressEndMessage(address, 7.123),
    )


def result(end: TaskEnd) -> StressedGpu:
    (gpu,) = machine().driver.gpus.value  # type: ignore[union-attr]
    return stressed(gpu, "torch", end)


def load_test_in(end: TaskEnd) -> LoadTest:
    test = result(end).test
    assert isinstance(test, Known)
    return test.value


def test_a_whole_test() -> None:
    found = load_test_in(TaskEnd("finished", "", whole()))
    rates = {rate.name: rate for rate in found.rates}
    memory = rates["memory"].speeds
    assert isinstance(memory, Known)
    assert memory.value == (6e11, 6.5e11, 7e11, 3)
    share = rates["memory"].share
    assert share is not None
    assert round(share, 3) == 0.846, "of the 768 GB/s of an RTX A6000"
    assert rates["from-gpu"].speeds == Unknown("RuntimeError: no")
    assert rates["float16"].speeds == Absent("it has bfloat16")
    assert isinstance(rates["tf32"].speeds, Unknown)
    assert rates["to-gpu"].peak == Known(1.969 * 16 * 1e9, "PCIe 4 with 16 lanes")
    checks = {check.name: check.right for check in found.results}
    assert checks["to-gpu"] == Unknown("MemoryError: ")
    assert isinstance(checks["float32"], Known)
    assert not checks["float32"].value
    state = found.state
    assert isinstance(state.clock_mhz, Known)
    assert state.clock_mhz.value == 1500, "during products only"
    assert isinstance(state.watts, Known)
    assert state.watts.value == 300
    assert isinstance(state.slowdowns, Known)
    assert state.slowdowns.value == ("software-thermal", "power-cap")
    assert isinstance(state.pcie_generation, Known)
    assert state.pcie_generation.value == 4, "during copies over the bus only"


def test_what_was_known_before_a_crash_is_kept() -> None:
    end = TaskEnd("signal", "SIGSEGV", whole()[:9], seconds=3.0)
    found = load_test_in(end)
    rates = {rate.name: rate.speeds for rate in found.rates}
    assert isinstance(rates["memory"], Known)
    assert rates["float32"] == Unknown("the test ended before: SIGSEGV")
    assert isinstance(found.state.clock_mhz, Unknown)


def test_a_gpu_without_an_answer_has_the_reason() -> None:
    refused = result(TaskEnd("finished", "", (StressRefusedMessage(ADDRESS, "it is busy"),)))
    assert refused.test == Unknown("it is busy")
    crashed = result(TaskEnd("exception", "ImportError: libcudart", ()))
    assert crashed.test == Unknown("the test did not begin: ImportError: libcudart")
    hung = result(TaskEnd("timed-out", "60 s", ()))
    assert isinstance(hung.test, Unknown)
    assert "was stopped after 60 s" in hung.test.reason


def test_an_instance_of_mig_is_compared_with_no_data_sheet() -> None:
    (gpu,) = machine("[driver.gpus.0]\nmig = true").driver.gpus.value  # type: ignore[union-attr]
    test = stressed(gpu, "torch", TaskEnd("finished", "", whole())).test
    assert isinstance(test, Known)
    assert all(rate.share is None for rate in test.value.rates)


def test_a_gpu_without_memory_of_its_own_copies_over_no_link() -> None:
    (card,) = machine().driver.gpus.value  # type: ignore[union-attr]
    on_chip = card._replace(compute_capability=Known("12.1", "example"))
    for gpu, kind in ((card, Known), (on_chip, Absent)):
        test = stressed(gpu, "torch", TaskEnd("finished", "", whole())).test
        assert isinstance(test, Known)
        assert {rate.name: type(rate.peak) for rate in test.value.rates}["to-gpu"] is kind


def test_a_gpu_that_ends_the_process_does_not_end_the_test_of_the_others() -> None:
    plan = LoadPlan("torch", ((0, StressGpu(ADDRESS, 1)), (1, StressGpu(OTHER, 1))), ())
    attempts: list[tuple[str, ...]] = []

    def attempt(gpus: tuple[StressGpu, ...]) -> TaskEnd:
        attempts.append(tuple(gpu.address for gpu in gpus))
        if len(attempts) == 1:
            return TaskEnd("timed-out", "90 s", whole()[:4])
        return TaskEnd("finished", "", whole(OTHER))

    first, second = results_of_all(TWO_GPUS, plan, attempt)
    assert attempts == [(ADDRESS, OTHER), (OTHER,)]
    assert isinstance(first.test, Known)
    assert isinstance(second.test, Known)


def test_a_gpu_that_hangs_when_it_is_opened_does_not_end_the_test_of_the_others() -> None:
    plan = LoadPlan("torch", ((0, StressGpu(ADDRESS, 1)), (1, StressGpu(OTHER, 1))), ())

    def attempt(gpus: tuple[StressGpu, ...]) -> TaskEnd:
        if len(gpus) == 2:
            return TaskEnd("timed-out", "90 s", (StressTryMessage(ADDRESS),))
        return TaskEnd("finished", "", whole(OTHER))

    first, second = results_of_all(TWO_GPUS, plan, attempt)
    assert isinstance(first.test, Unknown)
    assert "the test did not begin: it hung" in first.test.reason
    assert isinstance(second.test, Known)


def with_processes(*counts: int | None, busy: bool | None = None) -> TaskEnd:
    states = (
        StressStateMessage(ADDRESS, "memory", 1, 1, 1, 0, 1, 1, processes) for processes in counts
    )
    begin = StressBeginMessage(ADDRESS, "2.11.0", busy)
    return TaskEnd("finished", "", (begin, *states, StressEndMessage(ADDRESS, 1.0)))


@each(
    ("end", "others"),
    [
        (with_processes(1, 1), 0),
        (with_processes(1, 3, 1), 2),
        (with_processes(None, busy=True), 1),
        (with_processes(None), None),
    ],
)
def test_who_else_used_the_gpu(end: TaskEnd, others: int | None) -> None:
    found = load_test_in(end).others
    assert (found.value if isinstance(found, Known) else None) == others


def test_a_process_that_waits_does_not_use_the_gpu() -> None:
    asking = machine("""
        [driver.gpus.0]
        processes = [{pid = 2, name = "python", memory_bytes = 1, is_asking = true}]
    """)
    (gpu,) = asking.driver.gpus.value  # type: ignore[union-attr]
    test = stressed(gpu, "torch", with_processes(2)).test
    assert isinstance(test, Known)
    assert test.value.others == Known(0, "NVML, during the test under load")


def test_a_speed_of_nothing_is_not_a_speed() -> None:
    messages = (
        StressBeginMessage(ADDRESS, "2.11.0"),
        StressRateMessage(ADDRESS, "memory", (6e11, -1.0), "", True),
    )
    rates = {rate.name: rate.speeds for rate in load_test_in(TaskEnd("exit", "", messages)).rates}
    assert rates["memory"] == Unknown("a speed of nothing or less was measured")


def test_a_process_that_comes_to_no_gpu_is_not_started_again() -> None:
    plan = LoadPlan("torch", ((0, StressGpu(ADDRESS, 1)), (1, StressGpu(OTHER, 1))), ())
    attempts = []

    def attempt(gpus: tuple[StressGpu, ...]) -> TaskEnd:
        attempts.append(gpus)
        return TaskEnd("exit", "exit code 1")

    assert len(results_of_all(TWO_GPUS, plan, attempt)) == 2
    assert len(attempts) == 1
