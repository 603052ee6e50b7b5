"""A memory limit is computed once, for the GPUs that the program will see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.cases import each
from tests.kit import machine
from tests.launch.test_launch_plan import IDS, TWO, planned, variables
from whygpu.collectors.driver_answer import GpuIds
from whygpu.launch.gpu_memory import VisibleGpus, limited, visible_gpus
from whygpu.launch.policy_options import parse_policy
from whygpu.model.policy import LaunchPlan, MemoryLimit

GIB = 1 << 30
FRACTION = "XLA_PYTHON_CLIENT_MEM_FRACTION"
L4, H100 = 24 * GIB, 80 * GIB
UNEQUAL = TWO.replace('name = "NVIDIA L4"', f'name = "NVIDIA L4"\nmemory_total_bytes = {L4}')


def shown(text: str, visible: str) -> str:
    """The machine with a CUDA_VISIBLE_DEVICES that means these GPUs."""
    hidden = f'[environment.visible_gpus]\ntext = "{text}"\nvisible = {visible}\nignored = []\n'
    return UNEQUAL + hidden


def arguments(plan: LaunchPlan, framework: str) -> dict[str, Any]:
    (found,) = [
        call.arguments
        for call in plan.calls
        if (call.framework, call.name) == (framework, "set_memory_limit")
    ]
    return found


@each(
    ("words", "toml", "fraction"),
    [
        ("gpu:1 memory=8GiB", UNEQUAL, "0.1000"),
        ("gpu:0 memory=6GiB", UNEQUAL, "0.2500"),
        ("gpu:0 memory=1GiB", UNEQUAL, "0.0416"),
        ("gpu:0 memory=90GiB", UNEQUAL, "1.0000"),
        ("memory=8GiB", UNEQUAL, "0.1000"),
        ("memory=6GiB", shown("0", "[0]"), "0.2500"),
        ("gpu memory=8GiB", shown("1", "[1]"), "0.1000"),
        ("memory=8GiB", shown("1", '{unknown = "no order"}'), "0.1000"),
        ("gpu:1 memory=40%", UNEQUAL, "0.4000"),
    ],
)
def test_jax_gets_a_fraction_of_the_gpu_that_was_chosen(
    words: str, toml: str, fraction: str
) -> None:
    assert variables(planned(words, toml))[FRACTION] == fraction


@each(
    ("words", "environ", "toml", "by_gpu", "smallest"),
    [
        ("gpu:1,0 memory=50%", {}, UNEQUAL, [H100 // 2, L4 // 2], L4 // 2),
        ("gpu memory=50%", {}, UNEQUAL, [L4 // 2, H100 // 2], L4 // 2),
        ("gpu:1 memory=50%", {}, UNEQUAL, [H100 // 2], H100 // 2),
        ("memory=50%", {}, UNEQUAL, [], L4 // 2),
        (
            "memory=50%",
            {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"},
            UNEQUAL,
            [L4 // 2, H100 // 2],
            L4 // 2,
        ),
        ("memory=50%", {}, shown("1,0", "[1, 0]"), [H100 // 2, L4 // 2], L4 // 2),
        ("gpu:1,0 memory=4GiB", {}, UNEQUAL, [], 4 * GIB),
    ],
)
def test_tensorflow_gets_bytes_for_each_gpu(
    words: str, environ: Mapping[str, str], toml: str, by_gpu: list[int], smallest: int
) -> None:
    found = arguments(planned(words, toml, environ), "tensorflow")
    assert (found["bytes_by_gpu"], found["bytes"]) == (by_gpu, smallest)


def test_pytorch_gets_the_limit_as_it_was_given() -> None:
    assert arguments(planned("memory=4GiB", UNEQUAL), "torch") == {
        "bytes": 4 * GIB,
        "fraction": None,
    }
    assert arguments(planned("memory=50%", UNEQUAL), "torch") == {"bytes": None, "fraction": 0.5}


def test_gpus_of_unequal_size_share_a_fraction_and_that_is_said() -> None:
    (note,) = planned("gpu memory=8GiB", UNEQUAL).notes
    assert "0.1000 is at most 8GiB on the largest, and less on the others" in note
    assert planned("gpu:1 memory=8GiB", UNEQUAL).notes == ()
    assert planned("gpu memory=50%", UNEQUAL).notes == ()


@pytest.mark.parametrize("split", ["mig", "instance"])
def test_the_size_of_a_mig_instance_is_not_that_of_its_gpu(split: str) -> None:
    ids = IDS if split == "mig" else (GpuIds("GPU-aaaa", ("MIG-1111",)), IDS[1])
    toml = (
        UNEQUAL.replace('name = "NVIDIA L4"', 'name = "NVIDIA L4"\nmig = true')
        if split == "mig"
        else UNEQUAL
    )
    seen = machine(toml)
    gpus = visible_gpus(parse_policy("gpu:0"), seen, ids, {})
    assert gpus == VisibleGpus((None,), in_order=True)
    in_bytes = limited(MemoryLimit("bytes", GIB), gpus)
    assert (in_bytes.bytes, in_bytes.fraction) == (GIB, None)
    part = limited(MemoryLimit("fraction", 0.5), gpus)
    assert (part.bytes, part.bytes_by_gpu, part.fraction) == (None, (), 0.5)


def test_no_fraction_is_rounded_above_the_limit() -> None:
    for size in (L4, H100, 143771 << 20, 15360 << 20):
        for amount in (GIB, 3 * GIB, 7_000_000_000):
            found = limited(MemoryLimit("bytes", amount), VisibleGpus((size,), in_order=True))
            assert found.fraction is not None
            assert found.fraction * size <= amount
