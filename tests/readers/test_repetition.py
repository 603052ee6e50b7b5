"""Lines that differ only in numbers are left out; what can matter never is."""

from __future__ import annotations

from tests.cases import each
from whygpu.causes import catalogue
from whygpu.diagnosis.explainer import explain
from whygpu.model.log import Log
from whygpu.readers.log import read_text
from whygpu.readers.repetition import AT_EACH_END, KEPT, without_repetition

FAULT = "RuntimeError: CUDA error: out of memory"


def kept(*texts: str) -> list[str]:
    return [raw.decode() for _, raw in without_repetition(list(enumerated(texts)))]


def enumerated(texts: tuple[str, ...]) -> list[tuple[int, bytes]]:
    return [(number, text.encode()) for number, text in enumerate(texts, 1)]


def steps(count: int, start: int = 0) -> list[str]:
    return [f"epoch {n // 100} step {n} loss={n % 7}.{n}" for n in range(start, start + count)]


@each("count", [0, 1, KEPT])
def test_few_lines_of_a_kind_are_all_kept(count: int) -> None:
    assert kept(*steps(count)) == steps(count)


@each("count", [KEPT + 1, 100, 1000])
def test_of_many_lines_the_first_the_last_and_some_between_are_kept(count: int) -> None:
    all_of_them = steps(count)
    shown = kept(*all_of_them)
    assert len(shown) == KEPT
    assert shown[:AT_EACH_END] == all_of_them[:AT_EACH_END]
    assert shown[-AT_EACH_END:] == all_of_them[-AT_EACH_END:]
    assert shown == [text for text in all_of_them if text in shown]


def test_numbers_of_lines_stay() -> None:
    lines = without_repetition(enumerated((*steps(500), "done")))
    assert lines[-1] == (501, b"done")
    assert all(b" step %d " % (number - 1) in raw for number, raw in lines[:-1])


def test_lines_that_speak_of_a_gpu_or_a_failure_are_all_kept() -> None:
    told = [f"GPU memory: {n} MiB" for n in range(500)]
    assert kept(*told) == told


def test_the_neighbours_of_a_line_that_matters_are_kept() -> None:
    shown = kept(*steps(300), FAULT, *steps(300, 300))
    place = shown.index(FAULT)
    assert shown[place - 2 : place] == steps(300)[-2:]
    assert shown[place + 1 : place + 9] == steps(8, 300)


def test_a_traceback_is_kept_whole() -> None:
    frames = [f'  File "model.py", line {n}, in forward' for n in range(60)]
    trace = ["Traceback (most recent call last):", *frames, "ValueError: too deep"]
    shown = kept(*steps(300), *trace, *steps(300))
    start = shown.index(trace[0])
    assert shown[start : start + len(trace)] == trace


def test_bars_of_one_progress_are_one_kind() -> None:
    bars = [f"train {'█' * (n // 10)}{'▏▎▍▌▋▊▉'[n % 7]} {n}/400" for n in range(400)]
    assert len(kept(*bars)) == KEPT


def test_two_messages_of_another_language_are_two_kinds() -> None:
    russian = ["шаг выполнен" for _ in range(100)]
    shown = kept(*russian[:50], "недостаточно памяти", *russian[50:])
    assert "недостаточно памяти" in shown


def answer(log: Log) -> tuple[str, list[str]]:
    explanation = explain(log, catalogue())
    return explanation.verdict, [finding.code for finding in explanation.root_causes]


@each("failure", [FAULT, "Killed", "Segmentation fault (core dumped)", "KeyError: 'x'"])
def test_a_failure_means_the_same_after_ten_lines_and_after_a_thousand(failure: str) -> None:
    """With the same epochs: how far a program came is part of the answer."""
    few = [f"epoch {n} loss={n}" for n in range(10)]
    many = [f"epoch {n // 100} loss={n}" for n in range(1000)]
    short = answer(read_text("\n".join([*few, failure])))
    assert short == answer(read_text("\n".join([*many, failure])))
