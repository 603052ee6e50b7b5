"""What a task tells, held against a GPU: verdicts, words, JSON; and GPUs by their names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cases import each
from tests.kit import machine
from tests.schemas import obeys
from whygpu.errors import UsageError
from whygpu.memory import gpu_rooms
from whygpu.memory.estimator import Wanted, check, judge
from whygpu.model.estimate import MemoryEstimate, MemoryRoom
from whygpu.model.observed import Absent, Unknown, need
from whygpu.model.task_end import TaskEnd, TaskEnding
from whygpu.model.task_wire import (
    EstimateMessage,
    ExceptionMessage,
    LargestMessage,
    PartMessage,
    TaskFailure,
    TaskMessage,
    WayMessage,
)
from whygpu.model.work import What
from whygpu.render.memory_estimate import render, render_json
from whygpu.tables.process_overheads import overhead

MIB, GIB = 1 << 20, 1 << 30
WHAT = What("model-file", "/models/model.keras")
OVERHEAD = overhead("torch", "train")


def estimate(batch: int, needs: int, **more: Any) -> EstimateMessage:
    return EstimateMessage(
        batch=batch,
        framework="torch",
        is_function=False,
        parts=(
            PartMessage("weights", 100 * MIB, "measured", ""),
            PartMessage("gradients", 0, "measured", ""),
            PartMessage("workspace", 64 * MIB, "modelled", "cuBLAS's"),
        ),
        peak_bytes=needs - 8 * MIB,
        needs_bytes=needs,
        least_bytes=needs,
        most_bytes=needs,
        phase="backward",
        notes=("the loss is made up",),
        source="PyTorch 2.13",
    )._replace(**more)


def ended(
    *messages: TaskMessage,
    ending: TaskEnding = "finished",
    how: str = "",
    failure: TaskFailure = "error",
    traceback: str = "",
    printed: str = "",
) -> TaskEnd:
    kind, _, words = how.partition(": ")
    exception = ExceptionMessage(failure, kind, words, traceback)
    raised = exception if ending == "exception" or traceback else None
    return TaskEnd(ending, how, messages, printed, raised, 1.5, 0)


def judged(
    *messages: TaskMessage, room: int | None = None, batch: int = 64, **more: Any
) -> MemoryEstimate:
    place = None if room is None else MemoryRoom("within the limit", room, None, "")
    return judge(Wanted("model.keras", WHAT, batch, room=place), ended(*messages, **more))


def text(estimate: MemoryEstimate) -> str:
    shown = render(estimate, width=80, color=False)
    assert max(map(len, shown.splitlines())) <= 80
    obeys("memory-estimate", json.loads(render_json(estimate)))
    return shown


@pytest.mark.parametrize(
    ("more", "verdict", "code"), [(0, "fits", 0), (-1, "does-not-fit", 1), (20 * GIB, "fits", 0)]
)
def test_what_cuda_takes_counts_as_well(more: int, verdict: str, code: int) -> None:
    found = judged(estimate(64, 2 * GIB), room=2 * GIB + OVERHEAD + more)
    assert (found.verdict, found.exit_code) == (verdict, code)
    assert found.total_bytes == 2 * GIB + OVERHEAD
    # By a byte, nothing is certain.
    assert ("The margin is small" in text(found)) == (more < GIB)


@pytest.mark.parametrize(
    ("room", "verdict", "code"),
    [(2, "does-not-fit", 1), (2.7, "unknown", 4), (4.7, "unknown", 4), (4.9, "fits", 0)],
)
def test_an_estimate_that_is_a_range_fits_only_as_a_whole(
    room: float, verdict: str, code: int
) -> None:
    message = estimate(64, 3 * GIB, least_bytes=int(1.7 * GIB), most_bytes=4 * GIB)
    largest = LargestMessage(batch=30, next_batch=40)
    smaller = message._replace(batch=30)
    found = judged(message, smaller, largest, room=int(room * GIB))
    assert (found.verdict, found.exit_code) == (verdict, code)
    shown = " ".join(text(found).split())
    assert "it takes 2.44 GiB to 4.74 GiB, and there are" in shown
    assert ("the estimate is not accurate enough" in shown) == (verdict == "unknown")
    assert "batch 30 fits; 40 may not" in shown


def test_another_way_fits_only_with_all_that_it_may_need() -> None:
    ways = [WayMessage("both", batch=1, needs_bytes=GIB, most_bytes=most * GIB) for most in (1, 2)]
    found = judged(estimate(64, 6 * GIB), *ways, room=2 * GIB)
    assert [way.fits for way in found.others] == [True, False]


def test_without_a_gpu_there_is_nothing_to_fit_into() -> None:
    found = judged(estimate(64, 2 * GIB))
    assert (found.verdict, found.exit_code) == ("not-asked", 0)
    shown = text(found)
    assert shown.startswith(
        "· model.keras, training with batch 64, takes about 2.74 GiB on a GPU.\n"
    )
    assert 'give --gpu "RTX 4090"' in shown
    assert "What fits" not in shown


def test_parts_are_shown_with_how_they_are_known() -> None:
    shown = text(judged(estimate(64, 2 * GIB)))
    assert "At its peak, in the backward pass:\n" in shown
    assert "   weights                  100 MiB   measured\n" in shown
    assert "   workspace                 64 MiB   modelled; cuBLAS's\n" in shown
    assert "gradients" not in shown
    assert "   between its arrays         8 MiB   gaps" in shown
    assert "The loss is made up.\n" in shown


def test_the_largest_batch_and_the_one_beyond_it() -> None:
    largest = LargestMessage(batch=23, next_batch=24)
    found = judged(
        estimate(64, 6 * GIB), estimate(23, GIB), estimate(24, 4 * GIB), largest, room=3 * GIB
    )
    assert found.largest is not None
    assert (found.largest.batch, found.next_batch, found.exit_code) == (23, 24, 1)
    assert "   - batch 23 is the largest that fits (1.74 GiB)\n" in text(found)


def test_between_what_fits_and_what_does_not_there_may_be_others() -> None:
    largest = LargestMessage(batch=500, next_batch=504)
    found = judged(estimate(64, GIB), estimate(500, 2 * GIB), largest, room=3 * GIB)
    assert "batch 500 fits; 504 does not" in text(found)


def test_nothing_fits_and_what_would() -> None:
    found = judged(
        estimate(64, 6 * GIB),
        LargestMessage(batch=0, next_batch=1),
        WayMessage("mixed precision", batch=1, needs_bytes=GIB, most_bytes=GIB),
        WayMessage("SGD instead of adam", batch=1, needs_bytes=4 * GIB, most_bytes=4 * GIB),
        room=2 * GIB,
    )
    assert [way.fits for way in found.others] == [True, False]
    shown = text(found)
    assert "   - not even a batch of 1 fits\n" in shown
    assert "   - mixed precision, batch 1: 1.74 GiB, fits\n" in shown
    assert "   - SGD instead of adam, batch 1: 4.74 GiB, does not fit either\n" in shown


def test_a_function_is_called_and_not_trained() -> None:
    found = judged(estimate(64, GIB, is_function=True, framework="jax", phase=""), room=8 * GIB)
    assert found.mode == "call"
    shown = text(found)
    assert shown.startswith("✓ model.keras, called once, fits")
    assert "the function takes no batch_size" in shown


@each("needs", [1 * GIB, 100 * GIB])
def test_memory_that_depends_on_a_value_gives_no_verdict(needs: int) -> None:
    end = ended(estimate(32, needs, depends_on="net.py:7"))
    found = judge(Wanted("net.py", WHAT, 32, room=gpu_rooms.of_limit(10 * GIB)), end)
    assert found.verdict == "unknown"
    assert "net.py:7" in found.why


@each(
    ("ending", "how", "words"),
    [
        ("exception", "RuntimeError: aten::nonzero has no shape", "RuntimeError: aten::nonzero"),
        ("timed-out", "900 s", "it took longer than 900 s"),
        ("signal", "SIGKILL", "SIGKILL ended its process"),
        (
            "exit",
            "exit code 3",
            "it exited with exit code 3; the last line of its output: no data here",
        ),
    ],
)
def test_why_there_is_no_estimate(ending: TaskEnding, how: str, words: str) -> None:
    found = judged(
        ending=ending,
        how=how,
        traceback="Traceback\n  line\nRuntimeError: x\n",
        printed="loading\nno data here\n\n",
    )
    assert (found.verdict, found.exit_code, found.at) == ("unknown", 4, None)
    shown = text(found)
    assert shown.startswith("? Cannot tell how much memory model.keras needs: ")
    assert words in " ".join(shown.split())
    assert "   RuntimeError: x\n" in shown


def test_a_crash_says_where() -> None:
    printed = 'Fatal Python error: x\n\nThread 1:\n  File "/a/net.py", line 3 in f\n  File "b"\n'
    found = judged(ending="signal", how="SIGSEGV", printed=printed)
    assert found.why == 'SIGSEGV ended its process, at "/a/net.py", line 3 in f'


def test_the_place_is_shown_without_the_words_of_the_headline() -> None:
    frames = '  File "/a/net.py", line 3, in f\n    x.g()\n'
    first = f"Traceback (most recent call last):\n{frames}KeyError: 'deeper'\n"
    last = f"{first}\nTraceback (most recent call last):\n{frames}ValueError: bad\nand long\n"
    shown = text(judged(ending="exception", how="ValueError: bad\nand long", traceback=last))
    assert shown.count("bad") == 1
    assert "KeyError: 'deeper'" in shown
    assert shown.count("line 3, in f") == 2


def test_an_estimate_stands_even_if_the_search_after_it_fails() -> None:
    found = judged(estimate(64, GIB), room=2 * GIB, ending="exception", how="ValueError: later")
    assert found.verdict == "fits"
    assert "The rest was not estimated: ValueError: later." in text(found)


def test_what_cannot_be_used_is_wrong_usage() -> None:
    with pytest.raises(UsageError, match="model\\.keras: the module has no weights"):
        judged(ending="exception", how="Unusable: the module has no weights", failure="unusable")


def test_what_the_estimator_cannot_tell_is_an_answer_and_no_fault() -> None:
    why = "on a GPU, TensorFlow would run it eagerly"
    estimate = judged(
        ending="exception",
        how=f"CannotTell: {why}",
        failure="cannot-tell",
        traceback="File x, line 1",
    )
    assert (estimate.verdict, estimate.exit_code, estimate.why) == ("unknown", 4, why)
    assert estimate.traceback == ""
    assert text(estimate).startswith(
        "? Cannot tell how much memory model.keras needs: on a GPU, TensorFlow"
    )


@each(
    ("changes", "words"),
    [
        ({"batch": 0}, "batch_size=0: expected 1 or more"),
        ({"timeout": 0.0}, "timeout=0.0: expected"),
        ({"backend": "theano"}, "backend='theano': expected torch, jax, tensorflow"),
        ({"mode": "infer", "optimizer": "sgd"}, "optimizer='sgd': inference has no"),
    ],
)
def test_what_cannot_be_meant(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check(Wanted("model.keras", WHAT, 64)._replace(**changes))


@each(
    ("name", "where", "gib", "capability"),
    [
        ("RTX 4090", "on the RTX 4090", 24, (8, 9)),
        ("geforce 4070ti", "on the RTX 4070 Ti", 12, (8, 9)),
        ("RTX 4070 Ti Super", "on the RTX 4070 Ti SUPER", 16, (8, 9)),
        ("A100 80GB", "on the A100 80GB", 80, (8, 0)),
        ("H200", "on the H200", 141, (9, 0)),
        # A sixteenth goes to error correction.
        ("T4", "on the Tesla T4", 15, (7, 5)),
    ],
)
def test_a_gpu_by_its_name(name: str, where: str, gib: float, capability: tuple[int, int]) -> None:
    room = gpu_rooms.of_name(name)
    assert (room.where, room.capability, room.note) == (where, capability, "")
    assert 0.98 * gib * GIB < room.bytes <= gib * GIB


def test_a_note_says_that_the_smallest_of_several_sizes_is_assumed() -> None:
    room = gpu_rooms.of_name("RTX 3080")
    assert room.bytes < 10 * GIB
    assert "10 and 12 GB" in room.note
    assert '--gpu "RTX 3080 12GB"' in room.note
    assert gpu_rooms.of_name("RTX 3080 12GB").bytes > 11 * GIB


@pytest.mark.parametrize(("name", "words"), [("Voodoo 2", "limit='24GiB'"), ("RTX", "ambiguous")])
def test_names_that_tell_nothing(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        gpu_rooms.of_name(name)


def test_this_machine_has_the_room_that_is_free() -> None:
    room = need(gpu_rooms.of_machine(machine("").driver.gpus))
    assert room.where.startswith("free on GPU 0")
    assert room.bytes > 0
    assert isinstance(gpu_rooms.of_machine(machine('start = "no-gpu"').driver.gpus), Absent)


def test_a_gpu_whose_memory_nobody_tells_is_not_a_machine_without_one() -> None:
    for toml in (
        '[driver]\ngpus = {unknown = "NVML could not be asked"}',
        '[driver.gpus.0]\nmemory_used_bytes = {unknown = "NVML could not be asked"}',
    ):
        room = gpu_rooms.of_machine(machine(toml).driver.gpus)
        assert room == Unknown("NVML could not be asked")
    wanted = Wanted("model.keras", WHAT, 64, no_room="NVML could not be asked")
    found = judge(wanted, ended(estimate(64, GIB)))
    assert (found.verdict, found.exit_code) == ("unknown", 4)
    text = render(found, width=200, color=False)
    assert text.startswith("? ")
    assert "is unknown: NVML could not be asked" in text
