"""Which GPUs are put under load, and by what."""

from __future__ import annotations

from tests.kit import machine
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.stress.choosing import LoadPlan, plan_load


def plan(toml: str = "", *, even_if_busy: bool = False) -> LoadPlan:
    chosen = plan_load(machine(toml), even_if_busy=even_if_busy)
    assert isinstance(chosen, Known), chosen
    return chosen.value


def reasons(chosen: LoadPlan) -> list[str]:
    return [gpu.test.reason for gpu in chosen.left_alone if isinstance(gpu.test, Unknown)]


BUSY = """
[driver.gpus.0]
processes = [{pid = 4711, name = "python", memory_bytes = 9_000_000_000}]
"""


def test_an_unused_gpu_is_tested_with_the_first_framework_that_computed_on_it() -> None:
    chosen = plan()
    assert chosen.framework == "torch"
    assert [(number, gpu.address) for number, gpu in chosen.gpus] == [(0, "0000:41:00.0")]
    assert chosen.gpus[0][1].bytes == 3 << 30
    assert chosen.left_alone == ()


def test_a_gpu_in_use_is_left_alone_unless_forced() -> None:
    chosen = plan(BUSY)
    assert chosen.gpus == ()
    assert reasons(chosen) == ["it is in use by python (4711); to test it anyway: --stress-busy"]
    assert len(plan(BUSY, even_if_busy=True).gpus) == 1


def test_main_memory_in_use_is_nobody_s_work_on_the_gpu() -> None:
    chosen = plan("""
        [driver.gpus.0]
        name = "NVIDIA GB10"
        compute_capability = "12.1"
        memory_total_bytes = 130_000_000_000
        memory_used_bytes = 60_000_000_000
    """)
    assert [(number, gpu.bytes) for number, gpu in chosen.gpus] == [(0, 3 << 30)]


def test_a_desktop_and_the_program_that_asks_do_not_count() -> None:
    chosen = plan("""
        [driver.gpus.0]
        processes = [
          {pid = 1, name = "Xorg", memory_bytes = 1},
          {pid = 2, name = "python", memory_bytes = 1, is_asking = true},
        ]
    """)
    assert len(chosen.gpus) == 1


def test_memory_of_programs_that_are_not_listed_is_somebody_s_work() -> None:
    """As inside a container, where NVML lists no process of another one."""
    hidden = "[driver.gpus.0]\nprocesses = []\nmemory_used_bytes = 9_000_000_000"
    assert reasons(plan(hidden)) == [
        "programs that are not visible from here use 8.38 GiB of its memory; "
        "to test it anyway: --stress-busy"
    ]
    assert len(plan(hidden, even_if_busy=True).gpus) == 1


def test_memory_of_the_program_that_asks_is_explained() -> None:
    asking = """
        [driver.gpus.0]
        memory_used_bytes = 9_000_000_000
        processes = [{pid = 2, name = "python", memory_bytes = 8_900_000_000, is_asking = true}]
    """
    assert len(plan(asking).gpus) == 1


def test_a_full_gpu_is_left_alone() -> None:
    full = "[driver.gpus.0]\nmemory_used_bytes = 51_000_000_000"
    assert reasons(plan(full, even_if_busy=True)) == [
        "only 515 MiB of its memory are free; 1 GiB needed"
    ]


def test_only_gpus_that_programs_see_are_tested() -> None:
    chosen = plan("""
        [driver.gpus.1]
        pci_address = "0000:42:00.0"
        [environment]
        visible_gpus = {text = "1", visible = [1], ignored = []}
    """)
    assert [number for number, _ in chosen.gpus] == [1]


def test_without_a_framework_on_the_gpu_nothing_can_be_tested() -> None:
    chosen = plan_load(machine('only = ["keras"]'), even_if_busy=False)
    assert isinstance(chosen, Unknown)
    assert "nothing in this environment computes on the GPU" in chosen.reason


def test_if_nothing_was_run_a_build_for_cuda_is_used() -> None:
    assert plan('probes_left_out = "--no-probe"').framework in ("torch", "jax", "tensorflow")


def test_a_framework_that_failed_on_the_gpu_is_not_used() -> None:
    failed = """
        [probes.torch]
        ended = "signal"
        how = "SIGSEGV"
    """
    assert plan(failed).framework == "jax"


def test_without_a_gpu_there_is_nothing_to_test() -> None:
    assert isinstance(plan_load(machine('start = "no-gpu"'), even_if_busy=False), Absent | Unknown)
