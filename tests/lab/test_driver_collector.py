"""The driver collector on a stub driver: its worker really runs, loads NVML, and really hangs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.driver import StubDriver, StubGpu, StubProcess
from tests.patience import stopped_in_time
from whygpu.collectors import driver, memory
from whygpu.host.local import LocalHost
from whygpu.model.driver import Driver
from whygpu.model.observed import Known, Unknown

Collect = Callable[..., Driver]


@pytest.fixture
def collect(tmp_path: Path, built_driver: Path, monkeypatch: pytest.MonkeyPatch) -> Collect:
    def collect(stub: StubDriver, timeout: float = driver.TIME_LIMIT) -> Driver:
        for name, value in stub.install(tmp_path / "driver", cache=built_driver).items():
            monkeypatch.setenv(name, value)
        facts, _ = driver.collect(LocalHost(), timeout=timeout)
        return facts

    return collect


def test_a_healthy_driver(collect: Collect) -> None:
    training = StubProcess(4711, "/opt/conda/bin/python", 1024)
    drawing = StubProcess(815, "/usr/lib/xorg/Xorg", None, graphics=True)
    facts = collect(StubDriver(gpus=(StubGpu(processes=(training, drawing)), StubGpu(mig="on"))))
    assert facts.state == Known("working", "NVML")
    assert facts.version == Known("580.65.06", "NVML")
    assert facts.cuda == Known("13.0", "NVML")
    assert isinstance(facts.nvml_library, Known)
    assert facts.nvml_library.value.kind == "driver"
    assert isinstance(facts.gpus, Known)
    first, second = facts.gpus.value
    assert (first.name, first.compute_capability) == (
        "NVIDIA A100-SXM4-40GB",
        Known("8.0", "NVML"),
    )
    assert first.memory_used_bytes == Known(4 << 20, "NVML")
    assert (first.mig, second.mig) == (Known(False, "NVML"), Known(True, "NVML"))
    assert isinstance(first.processes, Known)
    rows = [(process.pid, process.name, process.memory_bytes) for process in first.processes.value]
    assert rows == [
        (815, Known("Xorg", "NVML"), Unknown("NVML does not report memory per process here")),
        (4711, Known("python", "NVML"), Known(1 << 30, "NVML")),
    ]


def test_a_lost_gpu_leaves_the_other(collect: Collect) -> None:
    facts = collect(StubDriver(gpus=(StubGpu(lost=True), StubGpu())))
    assert facts.state == Known("lost", "NVML")
    assert isinstance(facts.gpus, Known)
    assert isinstance(facts.gpus.value[0].memory_used_bytes, Unknown)
    assert isinstance(facts.gpus.value[1].memory_used_bytes, Known)


def test_gpus_of_other_jobs_are_not_this_process_affair(collect: Collect) -> None:
    """A scheduler withholds them: NVML counts them, and CUDA does not."""
    withheld = StubGpu(returns={"nvmlDeviceGetHandleByIndex": 4})
    given = StubGpu(name="NVIDIA H100 80GB HBM3")
    facts = collect(StubDriver(gpus=(withheld, given, withheld, given)))
    assert facts.state == Known("working", "NVML")
    assert isinstance(facts.gpus, Known)
    gpus = [(gpu.number, gpu.name, gpu.pci_address) for gpu in facts.gpus.value]
    assert gpus == [(0, given.name, "0000:02:00.0"), (1, given.name, "0000:04:00.0")]
    assert isinstance(facts.pairs, Known)
    assert [(pair.first, pair.second) for pair in facts.pairs.value] == [(0, 1)]


def test_a_gpu_without_memory_of_its_own_has_that_of_the_machine(collect: Collect) -> None:
    """As on DGX Spark. A card that says the same has memory that nobody knows."""
    silent = {"nvmlDeviceGetMemoryInfo": 3}
    on_chip = StubGpu(name="NVIDIA GB10", compute_capability="12.1", returns=silent)
    facts = collect(StubDriver(gpus=(on_chip, StubGpu(returns=silent))))
    assert isinstance(facts.gpus, Known)
    shared, card = facts.gpus.value
    assert isinstance(shared.memory_total_bytes, Known)
    assert shared.memory_total_bytes == memory.collect(LocalHost()).total_bytes
    assert isinstance(shared.memory_used_bytes, Known)
    assert 0 < shared.memory_used_bytes.value < shared.memory_total_bytes.value
    assert isinstance(card.memory_total_bytes, Unknown)
    assert isinstance(card.memory_used_bytes, Unknown)


def test_no_gpu_may_be_opened(collect: Collect) -> None:
    facts = collect(StubDriver(gpus=(StubGpu(returns={"nvmlDeviceGetHandleByIndex": 4}),) * 2))
    assert facts.state == Known("denied", "NVML")


@pytest.mark.parametrize(("code", "state"), [(18, "mismatched"), (4, "denied"), (999, "failed")])
def test_nvml_does_not_start(collect: Collect, code: int, state: str) -> None:
    assert collect(StubDriver(nvml_init=code)).state == Known(state, "NVML")


def test_a_hung_driver_costs_its_time_limit_and_no_more(collect: Collect) -> None:
    """The stub hangs for ever."""
    hung = Known("hung", "NVML")
    facts, _ = stopped_in_time(
        lambda limit: collect(StubDriver(hang="nvmlInit"), timeout=limit),
        lambda facts: facts.state == hung,
    )
    assert facts.state == hung
