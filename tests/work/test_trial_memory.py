"""Whether a trial gives its memory back, with small objects in place of frameworks."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import each
from tests.comparer.inside import part

GAUGES, TRIAL = part("gauges"), part("tasks.trial")
MIB = 1 << 20
EAGER = "tensorflow.python.eager.context"
BRIDGE = "jax._src.xla_bridge"


@pytest.fixture(autouse=True)
def no_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "jax", "tensorflow", EAGER, BRIDGE):
        monkeypatch.delitem(sys.modules, name, raising=False)


def test_nothing_is_known_without_a_framework() -> None:
    assert TRIAL.in_one_piece() is None


@each(("reserved", "whole"), [(100, True), (132, True), (133, False)])
def test_torch_is_empty_if_its_cache_is(
    reserved: int, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    cuda = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        memory_allocated=lambda: 100 * MIB,
        memory_reserved=lambda: reserved * MIB,
        empty_cache=lambda: calls.append("cache"),
    )
    native = SimpleNamespace(_cuda_clearCublasWorkspaces=lambda: calls.append("workspaces"))
    torch: Any = SimpleNamespace(cuda=cuda, _C=native)
    monkeypatch.setitem(sys.modules, "torch", torch)
    TRIAL.release()
    # What the cache is emptied of last has to be free by then.
    assert calls == ["workspaces", "cache"]
    assert TRIAL.in_one_piece() is whole


@each(
    ("stats", "whole"),
    [
        ({"largest_free_block_bytes": 890}, True),
        ({"largest_free_block_bytes": 880}, False),
        # The pool can still grow.
        ({"largest_free_block_bytes": 10, "pool_bytes": 110}, True),
        ({"largest_free_block_bytes": 10, "pool_bytes": 500}, False),
        ({}, None),
    ],
)
def test_jax_says_how_large_a_piece_is_free(
    stats: dict[str, int], whole: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"bytes_limit": 1000, "bytes_in_use": 100, **stats}
    device = SimpleNamespace(platform="gpu", memory_stats=lambda: known)
    jax: Any = SimpleNamespace(local_devices=lambda: [device])
    bridge: Any = SimpleNamespace(_backends={"cuda": 1})
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, BRIDGE, bridge)
    assert TRIAL.in_one_piece() is whole


class Exhausted(Exception):
    pass


@each(
    ("limit", "piece", "whole"),
    [(1000, 890, True), (1000, 880, False), (None, 890, None)],
)
def test_tensorflow_is_asked_for_one_large_piece(
    limit: int | None, piece: int, whole: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(shape: list[int], value: float) -> None:
        if shape[0] * 4 > piece * MIB:
            raise Exhausted

    devices = [SimpleNamespace(memory_limit=limit)]
    tensorflow: Any = SimpleNamespace(
        config=SimpleNamespace(
            list_physical_devices=lambda kind: [kind],
            get_logical_device_configuration=lambda gpu: devices,
            experimental=SimpleNamespace(get_memory_info=lambda name: {"current": 100 * MIB}),
        ),
        device=lambda name: pytest.MonkeyPatch().context(),
        executing_eagerly=lambda: True,
        fill=fill,
        test=SimpleNamespace(experimental=SimpleNamespace(sync_devices=lambda: None)),
        errors=SimpleNamespace(ResourceExhaustedError=Exhausted),
    )
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    monkeypatch.setattr(GAUGES, "tensorflow_gpus", lambda module: ["GPU:0"] if module else [])
    assert TRIAL.in_one_piece() is whole
    assert TRIAL.device_limit() == (None if limit is None else limit * MIB)


@each(("before", "now", "peak"), [(0, 500, 500), (300, 500, 500), (500, 500, 40)])
def test_a_peak_of_jax_that_has_not_risen_is_of_an_earlier_trial(
    before: int, now: int, peak: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TRIAL, "jax_peak", lambda: now)
    monkeypatch.setattr(TRIAL, "EARLIER_PEAK", [before])
    assert TRIAL.peak_of({"now": 40, "peak": now}) == peak


class Program:
    def __init__(self, size: int) -> None:
        self.size = size

    def get_compiled_memory_stats(self) -> Any:
        return SimpleNamespace(
            argument_size_in_bytes=0, output_size_in_bytes=self.size, temp_size_in_bytes=0
        )


SMALL, WEIGHTS, STEP = Program(100), Program(50 * MIB), Program(60 * MIB)


@each(
    ("left", "forgotten"),
    [
        ([SMALL, WEIGHTS], False),
        # Compiled in the steps, and too small to matter.
        ([SMALL, WEIGHTS, Program(200)], False),
        ([SMALL, WEIGHTS, STEP], True),
        # A release of JAX that does not say how large its programs are.
        ([SMALL, object()], True),
    ],
)
def test_jax_forgets_its_programs_if_one_of_the_steps_is_left(
    left: list[Any], forgotten: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    programs: list[Any] = [SMALL, WEIGHTS]
    client = SimpleNamespace(live_executables=lambda: programs)
    jax: Any = SimpleNamespace(
        local_devices=lambda: [SimpleNamespace(client=client)],
        clear_caches=lambda: calls.append("forget"),
    )
    monkeypatch.setitem(sys.modules, "jax", jax)
    TRIAL.note_loading_programs()
    programs = left
    TRIAL.release()
    assert calls == (["forget"] if forgotten else [])
    # What the next trial makes its weights with is noted anew.
    assert TRIAL.LOADING_PROGRAMS == []


def test_jax_that_has_opened_no_device_is_not_made_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise AssertionError("opened a device")

    jax: Any = SimpleNamespace(local_devices=refuse, clear_caches=lambda: None)
    bridge: Any = SimpleNamespace(_backends={})
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, BRIDGE, bridge)
    TRIAL.note_loading_programs()
    TRIAL.release()
