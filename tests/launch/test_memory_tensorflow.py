"""What TensorFlow's part of the memory watch says of limits, without TensorFlow."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tests.launch.test_memory_live import BOOTSTRAP

MIB = 1 << 20


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with two logical devices started."""
    monkeypatch.syspath_prepend(str(BOOTSTRAP))
    module = importlib.import_module("whygpu_bootstrap.memory.tensorflow")
    context = SimpleNamespace(
        _initialized=True,
        _logical_devices=[
            SimpleNamespace(device_type="CPU", name="/device:CPU:0"),
            SimpleNamespace(device_type="GPU", name="/device:GPU:0"),
            SimpleNamespace(device_type="GPU", name="/device:GPU:1"),
        ],
        get_memory_info=lambda name: {"current": 5, "peak": 7},
    )
    monkeypatch.setattr(module, "_contexts", [context])
    yield module
    del sys.modules["whygpu_bootstrap.memory.tensorflow"]


def tensorflow(*limits: list[int | None] | None, old: bool = False) -> Any:
    """Its configuration of GPUs: for each the limits of its logical devices, in MiB."""
    divided = [
        [SimpleNamespace(memory_limit=limit) for limit in parts] if parts else None
        for parts in limits
    ]
    get = {"get_virtual_device_configuration" if old else "get_logical_device_configuration"}
    experimental = SimpleNamespace(get_visible_devices=lambda kind: list(range(len(divided))))
    config = SimpleNamespace(experimental=experimental)
    setattr(experimental if old else config, get.pop(), lambda gpu: divided[gpu])
    return SimpleNamespace(config=config)


@pytest.mark.parametrize("old", [False, True], ids=["today", "before 2.1"])
def test_the_limits_of_logical_devices_are_reported_in_their_order(watch: Any, old: bool) -> None:
    found = watch.at_end(tensorflow([3072], None, old=old))
    assert [(each["device"], each["limit"]) for each in found] == [
        ("gpu:0", 3072 * MIB),
        ("gpu:1", None),
    ]
    (first, second) = watch.at_end(tensorflow([1024, 2048], old=old))
    assert (first["limit"], second["limit"]) == (1024 * MIB, 2048 * MIB)


def test_what_cannot_be_asked_costs_only_the_limit(watch: Any) -> None:
    found = watch.at_end(SimpleNamespace(config=SimpleNamespace()))
    assert [(each["live"], each["limit"]) for each in found] == [(5, None), (5, None)]
