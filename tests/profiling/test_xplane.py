"""The reader of XSpace files, on messages that are written here, and on broken ones."""

from __future__ import annotations

import random

import pytest

from whygpu.model.device_recording import ProfilerRun
from whygpu.profiling import xplane_device as device
from whygpu.profiling.broken_profile import BrokenProfile
from whygpu.profiling.tf_data_profile import summary
from whygpu.profiling.xplane import read_planes

FUNCTION = "EagerLocalExecute: __inference_step_12"
NEXT = "IteratorGetNextOp::DoCompute"


def varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def space(plane: str, *events: tuple[str, float, float], line: str = "") -> bytes:
    """A profile of one plane; an event is its name, its begin and its end in milliseconds."""
    names = {name: key for key, name in enumerate(dict.fromkeys(e[0] for e in events), start=1)}
    content = (
        message(2, line.encode())
        + number(3, 5)
        + b"".join(
            message(
                4,
                number(1, names[name])
                + number(2, round(begin * 1e9))
                + number(3, round((end - begin) * 1e9)),
            )
            for name, begin, end in events
        )
    )
    metadata = b"".join(
        message(4, number(1, key) + message(2, number(1, key) + message(2, name.encode())))
        for name, key in names.items()
    )
    return message(1, message(2, plane.encode()) + message(3, content) + metadata)


def test_waiting_counts_inside_functions_only() -> None:
    data = space("/host:CPU", (FUNCTION, 0, 100), (NEXT, 20, 80), (NEXT, 30, 60), (NEXT, 150, 190))
    found = summary(read_planes(data))
    assert found is not None
    assert found.seconds == pytest.approx(0.1)
    assert found.input_seconds == pytest.approx(0.06)


def test_a_batch_that_was_ready_is_not_waited_for() -> None:
    making = "Iterator::Root::Prefetch::ParallelMapV2#id=1#"
    kept = ("Iterator::Root#id=2#", 20, 80), ("Iterator::Root::Prefetch", 20, 80)
    data = space("/host:CPU", (FUNCTION, 0, 100), (NEXT, 20, 80), (making, 10, 30), *kept)
    found = summary(read_planes(data))
    assert found is not None
    assert found.input_seconds == pytest.approx(0.01)


def test_without_functions_there_is_nothing_to_divide() -> None:
    assert summary(read_planes(space("/host:CPU", (NEXT, 0, 10)))) is None


def test_a_stage_is_charged_for_its_own_work() -> None:
    data = space(
        "/host:CPU",
        (FUNCTION, 0, 100),
        ("Iterator::Root::Prefetch::FlatMap", 0, 50),
        ("Iterator::Root::Prefetch::FlatMap[0]::Generator", 5, 45),
    )
    found = summary(read_planes(data))
    assert found is not None
    assert [stage.name for stage in found.stages] == ["Generator", "FlatMap"]
    assert found.stages[1].seconds == pytest.approx(0.01)


def test_threads_of_jax_that_copy_into_pinned_memory_are_found() -> None:
    marks = ((device.MARK, 0, 0.1), (device.MARK, 100, 100.1))
    staged = (("H2D Dispatch", 10, 30), ("H2D Dispatch", 20, 40), ("Something else", 50, 60))
    data = space("/host:CPU", *marks, *staged)
    data += space("/device:GPU:0", ("kernel", 40, 50), line="Stream #1")
    run = ProfilerRun(begin=5.0, end=5.1, marks=((5.0, 5.0001), (5.1, 5.1001)))
    found = device.device_recording(read_planes(data, device.is_of_host), run)
    assert found is not None
    spans = [(round(span.begin, 4), round(span.end, 4)) for span in found.staging]
    assert spans == [(5.01, 5.03), (5.02, 5.04)]


def test_a_broken_file_is_an_error_and_never_a_crash() -> None:
    whole = space("/host:CPU", (FUNCTION, 0, 100), (NEXT, 20, 80))
    chance = random.Random(7)
    refused = 0
    for _ in range(300):
        data = bytearray(whole[: chance.randrange(len(whole) + 1)])
        for _ in range(chance.randrange(4)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            summary(read_planes(bytes(data)))
        except BrokenProfile:
            refused += 1
    assert refused > 100
