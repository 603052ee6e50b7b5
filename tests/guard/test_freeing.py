"""What a framework can still give out on a GPU, with small objects in place of frameworks."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import each
from whygpu.guard.freeing import free_on_gpu

GIB = 1 << 30
FRAMEWORKS = ("torch", "jax", "jax._src.xla_bridge", "tensorflow")
EAGER = "tensorflow.python.eager.context"


@pytest.fixture(autouse=True)
def no_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*FRAMEWORKS, EAGER):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_nothing_is_known_without_a_framework() -> None:
    assert free_on_gpu() is None


@each(
    ("started", "fraction", "free"),
    [(False, 1.0, None), (True, 1.0, 11 * GIB), (True, 0.5, 6 * GIB)],
)
def test_torch_counts_its_cache_and_its_limit(
    started: bool, fraction: float, free: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuda = SimpleNamespace(
        is_initialized=lambda: started,
        mem_get_info=lambda: (10 * GIB, 16 * GIB),
        memory_reserved=lambda: 3 * GIB,
        memory_allocated=lambda: 2 * GIB,
        get_per_process_memory_fraction=lambda: fraction,
    )
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert free_on_gpu() == free


@each(
    ("platform", "backends", "free"),
    [("gpu", {"cuda": 1}, 5 * GIB), ("cpu", {"cpu": 1}, None), ("gpu", {}, None)],
)
def test_jax_has_its_own_limit(
    platform: str, backends: dict[str, int], free: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stats = {"bytes_limit": 7 * GIB, "bytes_in_use": 2 * GIB}
    device = SimpleNamespace(platform=platform, memory_stats=lambda: stats)
    modules: dict[str, Any] = {
        "jax": SimpleNamespace(local_devices=lambda: [device]),
        "jax._src.xla_bridge": SimpleNamespace(_backends=backends),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    assert free_on_gpu() == free


@each(
    ("started", "gpus", "limits", "free"),
    [
        (True, 1, [3072], 2 * GIB),
        (True, 1, [None], None),
        (True, 1, None, None),
        (True, 0, [3072], None),
        (False, 1, [3072], None),
    ],
)
def test_tensorflow_tells_only_a_limit_that_was_set(
    started: bool,
    gpus: int,
    limits: list[int | None] | None,
    free: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    devices = None if limits is None else [SimpleNamespace(memory_limit=each) for each in limits]
    config = SimpleNamespace(
        list_physical_devices=lambda kind: ["GPU"] * gpus,
        get_logical_device_configuration=lambda gpu: devices,
        experimental=SimpleNamespace(get_memory_info=lambda name: {"current": GIB}),
    )
    modules: dict[str, Any] = {
        "tensorflow": SimpleNamespace(config=config),
        EAGER: SimpleNamespace(_context=SimpleNamespace(_initialized=started)),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    assert free_on_gpu() == free
