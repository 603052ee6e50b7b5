"""Trying again in more parts: when, how often, what is remembered, and when to give up."""

from __future__ import annotations

import pytest

from tests.cases import each
from whygpu.errors import UsageError
from whygpu.guard import splitting
from whygpu.guard.guard_report import Record
from whygpu.guard.splitting import CannotSplit, Sizes, Splitter, balanced


class Memory:
    """A step that needs memory for its largest part, on a machine that has some."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.attempts: list[Sizes] = []

    def step(self, sizes: Sizes) -> int:
        self.attempts.append(sizes)
        if max(sizes) > self.room:
            raise MemoryError(f"Unable to allocate {max(sizes)}.0 GiB for an array")
        return sum(sizes)


def splitter(micro_batch: int | None = None) -> Splitter:
    return Splitter(Record(), of="training", micro_batch=micro_batch)


def test_parts_are_doubled_until_they_fit_and_the_size_is_remembered() -> None:
    memory, guard = Memory(room=10), splitter()
    assert guard.run(33, memory.step) == 33
    assert [len(sizes) for sizes in memory.attempts] == [1, 2, 4]
    memory.attempts.clear()
    assert guard.run(33, memory.step) == 33
    assert memory.attempts == [(9, 8, 8, 8)]
    assert guard.run(9, memory.step) == 9
    assert memory.attempts[-1] == (9,)


def test_what_fits_is_left_alone() -> None:
    memory, guard = Memory(room=64), splitter()
    guard.run(64, memory.step)
    assert memory.attempts == [(64,)]
    assert guard.record.report == (1, 0, (), ())


def test_the_report_has_the_first_refusal_and_the_last_attempt(
    capsys: pytest.CaptureFixture[str],
) -> None:
    guard = splitter()
    guard.run(5, Memory(room=5).step)
    guard.run(33, Memory(room=10).step)
    (cut,) = guard.record.report.cuts
    assert (cut.step, cut.samples, cut.micro_batches, cut.micro_batch) == (2, 33, 4, 9)
    assert cut.asked == 33 << 30
    assert guard.record.report[:2] == (2, 1)
    printed = capsys.readouterr().err
    assert printed == (
        "whygpu: training step 2: out of memory (asked for 33 GiB); trying 2 micro-batches of at "
        "most 17\n"
        "whygpu: training step 2: out of memory with 33 samples (33 GiB asked for); computed in 4 "
        "micro-batches of at most 9, as one step over all 33\n"
    )


def test_one_sample_that_does_not_fit_is_the_frameworks_own_error() -> None:
    memory, guard = Memory(room=0), splitter()
    with pytest.raises(MemoryError) as caught:
        guard.run(6, memory.step)
    assert [len(sizes) for sizes in memory.attempts] == [1, 2, 4, 6]
    notes = getattr(caught.value, "__notes__", ["even one sample"])
    assert "even one sample" in notes[0]


def test_other_errors_pass() -> None:
    def fail(sizes: Sizes) -> None:
        raise KeyError("no memory of this")

    with pytest.raises(KeyError):
        splitter().run(8, fail)


def test_a_refusal_to_split_leaves_the_error_that_there_was() -> None:
    def step(sizes: Sizes) -> None:
        if len(sizes) == 1:
            raise MemoryError
        raise CannotSplit("the samples are compared with each other")

    with pytest.raises(MemoryError) as caught:
        splitter().run(8, step)
    notes = getattr(caught.value, "__notes__", ["compared with each other"])
    assert "compared with each other" in notes[0]
    with pytest.raises(UsageError, match="compared with each other"):
        splitter(micro_batch=4).run(8, step)


def test_an_error_that_only_parts_have_is_a_note_on_the_first_error() -> None:
    def step(sizes: Sizes) -> None:
        if len(sizes) == 1:
            raise MemoryError
        raise ValueError("Expected more than 1 value per channel when training")

    with pytest.raises(MemoryError) as caught:
        splitter().run(8, step)
    assert isinstance(caught.value.__cause__, ValueError)
    notes = getattr(caught.value, "__notes__", ["it fails in parts: ValueError: Expected more"])
    assert "it fails in parts: ValueError: Expected more" in notes[0]


def test_after_a_refusal_a_missing_algorithm_is_a_lack_of_memory_too() -> None:
    """XLA tries algorithms in what is free, and says nothing about memory if it finds none."""

    def step(sizes: Sizes) -> int:
        if len(sizes) == 1:
            raise MemoryError
        if len(sizes) < 8:
            raise ValueError("INTERNAL: Autotuning failed for HLO: %conv = f32[8] custom-call()")
        return len(sizes)

    assert splitter().run(32, step) == 8
    with pytest.raises(ValueError, match="Autotuning failed"):
        splitter(micro_batch=16).run(32, step)


def test_a_failed_attempt_holds_nothing() -> None:
    class Tensor:
        alive = 0

        def __init__(self) -> None:
            Tensor.alive += 1

        def __del__(self) -> None:
            Tensor.alive -= 1

    def step(sizes: Sizes) -> int:
        before = Tensor.alive
        held = [Tensor()]
        if len(sizes) < 4:
            raise MemoryError
        return before + len(held) - 1

    assert splitter().run(8, step) == 0


@each("samples", [1, 2, 7, 64, 65])
@each("parts", [1, 2, 3, 7])
def test_sizes_are_balanced(samples: int, parts: int) -> None:
    if parts > samples:
        return
    sizes = balanced(samples, parts)
    assert len(sizes) == parts
    assert sum(sizes) == samples
    assert max(sizes) - min(sizes) <= 1


def test_exact_refuses_differences() -> None:
    guard = Splitter(Record(), of="training", exact=True)
    with pytest.raises(CannotSplit, match="dropout"):
        guard.differs("dropout")


def test_a_micro_batch_has_a_sample_at_least() -> None:
    with pytest.raises(UsageError, match="micro_batch=0"):
        splitter(micro_batch=0)


@each(
    ("free", "parts"),
    [
        (None, [1, 2, 4, 8]),
        # 64 GiB were asked for at once. A half and a quarter of that are more than is free.
        (15, [1, 8]),
        (16, [1, 4, 8]),
        (31, [1, 4, 8]),
        (100, [1, 2, 4, 8]),
        (0, [1, 64]),
    ],
)
def test_parts_that_cannot_fit_are_not_tried(
    free: int | None, parts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[int] = []

    def step(sizes: Sizes) -> None:
        attempts.append(len(sizes))
        if max(sizes) > 8:
            raise RuntimeError(f"CUDA out of memory. Tried to allocate {max(sizes)}.00 GiB.")

    monkeypatch.setattr(splitting, "free_on_gpu", lambda: None if free is None else free << 30)
    splitter().run(64, step)
    assert attempts == parts


def test_what_is_free_on_a_gpu_says_nothing_of_main_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(splitting, "free_on_gpu", lambda: 0)
    memory = Memory(room=10)
    splitter().run(33, memory.step)
    assert [len(sizes) for sizes in memory.attempts] == [1, 2, 4]
