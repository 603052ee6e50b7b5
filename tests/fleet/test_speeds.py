"""GPUs that are slower under load than others of their model, on hundreds of nodes."""

from __future__ import annotations

import json
import random

import pytest

from tests.kit import machine
from tests.schemas import obeys
from whygpu import diagnose
from whygpu.fleet.speeds import FEWEST, compared_speeds, speeds_of
from whygpu.fleet.summary import node_report, summarise
from whygpu.model.fleet import FleetReport, GpuSpeed, NodeReport
from whygpu.model.observed import Known
from whygpu.model.standing import Standing
from whygpu.model.stress import RateName
from whygpu.render.fleet_json import render as render_json
from whygpu.render.fleet_metrics import render as render_metrics
from whygpu.render.fleet_text import render

PLAIN = node_report("n", diagnose(machine("[stress.0]\nnumber = 0")))


def node(name: str, *speeds: float, rate: RateName = "bfloat16") -> NodeReport:
    found = tuple(GpuSpeed(i, "NVIDIA H200", rate, speed) for i, speed in enumerate(speeds))
    return PLAIN._replace(node=name, speeds=found)


def fleet(*nodes: NodeReport) -> FleetReport:
    return summarise(nodes, (), lambda node, code: None)


def test_a_snapshot_with_a_test_under_load_gives_its_speeds() -> None:
    assert {speed.rate for speed in PLAIN.speeds} == {
        *("memory", "to-gpu", "from-gpu", "float32", "tf32", "bfloat16")
    }


def test_a_gpu_that_others_used_meanwhile_is_not_compared() -> None:
    """`fleet check --stress` runs beside the jobs of a node."""
    used = node_report("n", diagnose(machine("[stress.0.test]\nothers = 1")))
    assert used.speeds == ()
    assert any("other processes computed on it" in reason for reason in used.unjudged)


@pytest.mark.parametrize("seed", range(5))
def test_planted_slow_gpus_are_named_and_no_others(seed: int) -> None:
    chance = random.Random(seed)
    nodes = [
        node(f"n{place}", *(chance.gauss(7e14, 1.2e13) for _ in range(8))) for place in range(200)
    ]
    planted = {}
    for place in chance.sample(range(200), 6):
        gpu, share = chance.randrange(8), chance.uniform(0.2, 0.8)
        speeds = [speed.per_second for speed in nodes[place].speeds]
        speeds[gpu] = 7e14 * share
        nodes[place] = node(f"n{place}", *speeds)
        planted[f"n{place}", gpu] = share
    _, slow = compared_speeds(nodes)
    assert {(gpu.node, gpu.gpu) for gpu in slow} == planted.keys()
    assert [gpu.share for gpu in slow] == sorted(gpu.share for gpu in slow)


def test_a_few_gpus_are_not_called_slow() -> None:
    nodes = [node(f"n{i}", 7e14) for i in range(FEWEST - 2)]
    assert compared_speeds([*nodes, node("slow", 1e14)])[1] == ()
    more = [node(f"n{i}", 7e14) for i in range(FEWEST - 1)]
    assert [gpu.node for gpu in compared_speeds([*more, node("slow", 1e14)])[1]] == ["slow"]


def test_a_spread_that_is_usual_is_no_fault() -> None:
    """Copies from main memory depend on the slot: half of the GPUs are slower."""
    nodes = [node(f"n{i}", 5e10 if i % 2 else 3e10, rate="to-gpu") for i in range(20)]
    assert compared_speeds(nodes)[1] == ()


def test_a_slow_gpu_is_in_the_report() -> None:
    report = fleet(*(node(f"n{i}", 7e14) for i in range(9)), node("slow", 3.5e14))
    standing: Standing = "attention"
    assert report.standing == standing
    text = render(report, width=100, color=False)
    assert "Slower under load than others of their model" in text
    assert "50% of the 700 TFLOP/s that are usual of 10 x NVIDIA H200" in " ".join(text.split())


def test_programs_can_read_it() -> None:
    report = fleet(*(node(f"n{i}", 7e14) for i in range(9)), node("slow", 3.5e14))
    data = json.loads(render_json(report))
    obeys("fleet", data)
    assert [(slow["node"], slow["median"]) for slow in data["slow"]] == [("slow", 7e14)]
    pytest.importorskip("prometheus_client", reason="needs whygpu[metrics]")
    metrics = render_metrics(report, made=0.0)
    labels = 'gpu="0",model="NVIDIA H200",node="slow",rate="bfloat16"'
    assert f"whygpu_node_gpu_slow{{{labels}}} 0.5" in metrics
    assert 'whygpu_fleet_gpu_speed{model="NVIDIA H200",rate="bfloat16"} 7' in metrics


def test_a_gpu_that_a_snapshot_names_twice_counts_once() -> None:
    plain = machine("[stress.0]\nnumber = 0")
    assert isinstance(plain.stress, Known)
    twice = plain._replace(stress=Known(plain.stress.value * 50, "a hostile node"))
    assert speeds_of(twice) == speeds_of(plain)


def test_impossible_speeds_of_a_hostile_snapshot_are_left_out() -> None:
    """What is no number at all is refused when a snapshot is read."""
    hostile = machine("""
        [stress.0.test.rates.memory]
        speeds = {lowest = 0.0, median = 0.0, highest = 0.0, repetitions = 1}
        [stress.0.test.rates.float32]
        speeds = {lowest = 0.0, median = -1.0, highest = 0.0, repetitions = 1}
    """)
    found = node_report("n", diagnose(hostile)).speeds
    assert {speed.rate for speed in found} == {"to-gpu", "from-gpu", "tf32", "bfloat16"}
