"""Profiles as a process would have recorded them, made from a few words."""

from __future__ import annotations

from collections.abc import Sequence

from whygpu.model.profile import CodePlace, ProcessProfile, StepMarks

PERIOD = 0.005
LOOP = CodePlace("program", "/home/me/train.py", "<module>", 20, "for x, y in loader:")
BACKWARD_LINE = CodePlace("program", "/home/me/train.py", "<module>", 23, "loss.backward()")
BACKWARD = CodePlace("library", "torch/_tensor.py", "backward", 600)
FETCH = CodePlace("library", "torch/utils/data/_utils/fetch.py", "fetch", 50)
QUEUE = CodePlace("library", "torch/utils/data/dataloader.py", "_try_get_data", 1100)
GET_ITEM = CodePlace("program", "/home/me/data.py", "__getitem__", 7, "decode(path)")
COMPUTING = (BACKWARD, BACKWARD_LINE)
ONE_PROCESS = (GET_ITEM, FETCH, LOOP)
WORKERS = (QUEUE, LOOP)


def calling(calls: str, text: str = "", line: int = 30) -> tuple[CodePlace, ...]:
    """The program is in a function of C."""
    return (CodePlace("program", "/home/me/train.py", "<module>", line, text or calls, calls),)


def own(function: str, *, generator: bool = False) -> tuple[CodePlace, ...]:
    """The program is in a function of its own, which the training loop calls."""
    line = CodePlace("program", "/home/me/train.py", "<module>", 22, f"{function}()")
    return (
        CodePlace("program", "/home/me/train.py", function, 5, "x += 1", generator=generator),
        line,
    )


def profile(
    step: Sequence[tuple[tuple[CodePlace, ...], int]],
    *,
    steps: int = 40,
    key: str = "torch SGD 1",
    cores: int = 4,
    busy_cores: float = 1.0,
) -> ProcessProfile:
    """A program whose every step consists of these stacks, each for a number of samples."""
    places: dict[CodePlace, int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    times, stack_of, marks = [0.0], [], []
    for stack, _ in step:
        numbers = tuple(places.setdefault(place, len(places)) for place in stack)
        stacks.setdefault(numbers, len(stacks))
    stack_of.append(0)
    for _ in range(steps):
        for stack, samples in step:
            number = stacks[tuple(places[place] for place in stack)]
            for _ in range(samples):
                times.append(times[-1] + PERIOD)
                stack_of.append(number)
        marks.append(times[-1])
    return ProcessProfile(
        seconds=times[-1],
        cores=cores,
        places=tuple(places),
        stacks=tuple(stacks),
        times=tuple(times),
        stack_of=tuple(stack_of),
        thread_seconds=tuple(times),
        process_seconds=tuple(busy_cores * time for time in times),
        marks=(StepMarks(key, steps, 1, tuple(marks)),),
    )
