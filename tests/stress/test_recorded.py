"""The messages of a real load test: PyTorch 2.11 on an NVIDIA H200, driver 580.159.04, 20 s."""

from __future__ import annotations

import json
import pathlib

from tests.fleet.made import HEALTHY, MACHINES
from tests.machines.healthy import GPU
from whygpu import diagnose, load_snapshot
from whygpu.model.codec import decode
from whygpu.model.driver import PcieLink
from whygpu.model.observed import Known
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import MessageLine
from whygpu.render.check_text import render
from whygpu.stress.results import stressed

RECORDED = pathlib.Path(__file__).with_name("h200-torch.jsonl")
LATER: dict[str, dict[str, None]] = {
    "stress-begin": {"busy": None},
    "stress-state": {"processes": None},
}
"""Fields that messages got after this was recorded: nothing was asked."""


def recorded() -> Snapshot:
    """A recorded H200 with this load test."""
    machine = load_snapshot(str(MACHINES / f"{HEALTHY}.json"))
    lines = map(json.loads, RECORDED.read_text().splitlines())
    messages = tuple(
        decode(MessageLine, {"message": {**LATER.get(line["kind"], {}), **line}}).message
        for line in lines
    )
    assert isinstance(machine.driver.gpus, Known)
    (gpu,) = machine.driver.gpus.value
    end = TaskEnd("finished", "", messages)
    assert isinstance(GPU.health, Known)
    link = Known(PcieLink(16, 16, 5, 5), "NVML")
    health = Known(GPU.health.value._replace(pcie=link), "NVML")
    gpu = gpu._replace(pci_address="0000:00:06.0", health=health)
    return machine._replace(stress=Known((stressed(gpu, "torch", end),), "--stress"))


def judged() -> Report:
    return diagnose(recorded())


def test_a_healthy_h200_reaches_most_of_its_data_sheet() -> None:
    (gpu,) = recorded().stress.value  # type: ignore[union-attr]
    assert isinstance(gpu.test, Known)
    shares = {
        rate.name: round(rate.share, 2) for rate in gpu.test.value.rates if rate.share is not None
    }
    assert shares == {
        "memory": 0.87,
        "to-gpu": 0.88,
        "from-gpu": 0.88,
        "float32": 0.76,
        "tf32": 0.88,
        "bfloat16": 0.77,
    }


def test_nothing_is_found_on_it() -> None:
    assert not {"WG111", "WG114", "WG115"} & {finding.code for finding in judged().findings}


def test_the_report_shows_it() -> None:
    text = " ".join(render(judged(), width=100, color=False, verbose=False).split())
    assert "copies in its memory 4.18 TB/s 87% of 4.8 TB/s right" in text
    assert "bfloat16 products 758 TFLOP/s 77% of 989 TFLOP/s right" in text
    assert "slowed by power-cap" in text
