"""Lines as their writers meant them: colours, prefixes, JSON, notebooks, encodings."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable

import pytest

from tests.cases import each
from tests.kit import explained
from whygpu.readers.cleaning import cleaned
from whygpu.readers.layout import joined, unprefixed, wrapping_of
from whygpu.readers.log import read_text

PLAIN = "RuntimeError: CUDA error: out of memory"


@each(
    "before",
    [
        "",
        "> ",
        ">> ",
        "# ",
        "| ",
        "app-1  | ",
        "algo-1-x1y2z_1  | ",
        "0|trainer  | ",
        "2021-05-29T05:52:59.000000+00:00 app[web.1]: ",
        "2023-01-01T00:00:00.0000000Z ",
        "build\tRun tests\t2023-01-01T00:00:00.0000000Z ",
        "2023-01-01T00:00:00.123456789Z stderr F ",
        "2023-03-03T04:23:22.123456+00:00 host kernel: ",
        "Nov 15 01:02:03 gpu01 python3[4711]: ",
        "Nov 15 01:02:03 python3[4711]: ",
        "Nov  5 01:02:03 gpu01 kernel: ",
        "[  123.456789] ",
        "[Fri Mar  3 04:23:22 2023] ",
        "[rank0]: ",
        "[rank12]:",
        "[default3]:",
        "[1,0]<stderr>:",
        "[1,mpirank:0,algo-1]<stderr>:",
        "(RayTrainWorker pid=4242, ip=10.0.0.7) ",
        "(train_fn pid=77) ",
        "(pid=77) ",
        "[pod/trainer-0/main] ",
        "E       ",
        "##[error]",
        "app_1 | [rank1]: ",
        "\x1b[36m(worker pid=5)\x1b[0m ",
    ],
)
def test_what_is_put_before_a_line_is_taken_away(before: str) -> None:
    assert cleaned((before + PLAIN).encode()) == [PLAIN]


@each(
    "line",
    [
        "[multiproc_executor.py:783] Traceback",
        "Nov 15 01:02:03 finished: all is well",
        "see [mnist] and [m_1]",
        ">>> import torch",
        "E tensorflow/stream_executor/cuda/cuda_driver.cc:481] failed call to cuInit",
        "2019-06-05 22:47:03.956082: E tensorflow/core/x.cc:300] text",
        "    raise ValueError(x)",
        "loss: 0.5 [12/100]",
        "[[{{node IteratorGetNext}}]]",
        "a && b &c; <d>",
        " 45%|████▌     | 45/100 [00:01<00:01, 40.1it/s]",
    ],
)
def test_what_belongs_to_a_line_stays(line: str) -> None:
    assert cleaned(line.encode()) == [line]


@pytest.mark.parametrize(
    "coloured",
    ["\x1b[0;31mError\x1b[0m: x", "^[[31mError^[[0m: x", "\\u001b[1;31mError\\u001b[0m: x"],
)
def test_colours_are_taken_away(coloured: str) -> None:
    assert cleaned(coloured.encode()) == ["Error: x"]


def test_titles_of_terminals_are_taken_away() -> None:
    assert cleaned(b"\x1b]0;user@host: ~\x07Error: x") == ["Error: x"]


def test_bytes_that_are_not_utf_8_are_no_error() -> None:
    assert cleaned("Gerät".encode("cp1252")) == ["Gerät"]
    assert cleaned(b"\xff\xfe\x81") != [""]


def test_an_empty_line_of_a_journal_is_empty() -> None:
    assert cleaned(b"Nov 15 01:02:03 gpu01 python3[4711]:") == [""]


def test_entities_of_web_pages() -> None:
    assert cleaned(b"File &quot;a.py&quot;, line 1, in &lt;module&gt;") == [
        'File "a.py", line 1, in <module>'
    ]


@each("key", ["message", "msg", "log", "textPayload"])
def test_a_line_of_json_says_its_message(key: str) -> None:
    assert cleaned(json.dumps({"level": "error", key: PLAIN + "\n"}).encode()) == [PLAIN]


def test_a_line_of_json_says_its_traceback_too() -> None:
    record = {"message": "step failed", "exc_info": 'Traceback:\n  File "a.py"\nKeyError: 1'}
    assert cleaned(json.dumps(record).encode()) == [
        "step failed",
        "Traceback:",
        '  File "a.py"',
        "KeyError: 1",
    ]


def test_a_message_inside_an_object_is_found() -> None:
    assert cleaned(json.dumps({"jsonPayload": {"message": PLAIN}}).encode()) == [PLAIN]


@each("text", ['{"step": 1, "loss": 0.5}', "{'loss': 0.5}", '{"a": [1}', "{}"])
def test_other_braces_stay(text: str) -> None:
    assert cleaned(text.encode()) == [text]


def test_json_nested_without_end_is_no_trouble() -> None:
    deep = '{"a":' * 30_000 + "1" + "}" * 30_000
    assert cleaned(deep.encode()) == [deep]


def test_a_line_of_a_notebook() -> None:
    line = json.dumps('\x1b[0;31mValueError\x1b[0m: it\'s "bad"\n')
    assert cleaned(f"      {line},".encode()) == ['ValueError: it\'s "bad"']


def test_all_kinds_of_output_of_a_notebook_on_one_line() -> None:
    outputs = [
        {"output_type": "stream", "text": ["first\n", "second\n"]},
        {"output_type": "execute_result", "data": {"text/plain": "False"}},
        {"output_type": "error", "traceback": ["Traceback", "ValueError: no"]},
        *("not an output", {"text": 3, "traceback": {"a": 1}, "data": []}),
    ]
    notebook = {"cells": [{"source": ["1 + 1"], "outputs": outputs}, 7, {"outputs": None}]}
    expected = ["first", "second", "False", "Traceback", "ValueError: no"]
    assert cleaned(json.dumps(notebook).encode()) == expected


def test_a_windows_path_is_not_broken_at_its_n() -> None:
    path = r"C:\new\nvidia\nccl\notes.txt"
    assert cleaned(path.encode()) == [path]


def test_backspaces_part_what_they_overwrite() -> None:
    assert cleaned(b" 1/9 loss: 2\x08\x08\x08 2/9 loss: 1") == [" 1/9 loss: 2", " 2/9 loss: 1"]


def cut_anywhere(text: str, width: int) -> list[str]:
    return [text[at : at + width].rstrip() for at in range(0, len(text), width)]


def cut_between_words(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) if len(text) > width else [text]


def unwrapped(lines: list[str]) -> list[str]:
    """The lines, joined if they show that they were wrapped."""
    numbered = list(enumerate(lines))
    wrapping = wrapping_of(lines)
    return [text for _, text in (joined(numbered, wrapping) if wrapping else numbered)]


def test_lines_that_a_console_wrapped_are_joined() -> None:
    lines = [
        "2018-03-16 10:00:00.1: I T:\\src\\gpu\\gpu_device.cc:1190] Creating the device whose "
        f"{'very ' * number}long name does not fit, and whose memory is {number} GiB in all,"
        for number in range(4)
    ]
    assert unwrapped([part for line in lines for part in cut_anywhere(line, 80)]) == lines


TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "/home/me/project/somewhere/deep/in/a/folder/train.py", line 812, in <module>',
    "    main()",
    '  File "/home/me/venv/lib/python3.10/site-packages/torch/nn/module.py", line 1130, in call',
    "    return forward_call(*input, **kwargs)",
    "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 10.76 GiB total "
    "capacity; 8.61 GiB already allocated; 1.01 GiB free; 8.70 GiB reserved in total by "
    "PyTorch) If reserved memory is much more than allocated memory, set a limit",
]


@each(
    ("width", "cut"),
    [(width, cut) for width in (50, 64, 80) for cut in (cut_anywhere, cut_between_words)],
)
def test_a_short_traceback_is_joined_whatever_wrapped_it(
    width: int, cut: Callable[[str, int], list[str]]
) -> None:
    assert unwrapped([part for line in TRACEBACK for part in cut(line, width)])[-1] == TRACEBACK[-1]


def test_the_rows_of_a_table_are_not_joined() -> None:
    table = ["+" + "-" * 77 + "+", *(f"| {n} Tesla V100 {'.' * 62} |" for n in range(9))]
    assert unwrapped(table) == table


@each(
    "lines",
    [
        [f"loss: {n:06} " + "accuracy: 0.123456 " * 4 for n in range(20)],
        TRACEBACK,
        ["a line of the usual length that ends here", "then a short one", "and another one", "end"],
        [f"name{n} is the name of a parameter with some text" for n in range(9)],
    ],
)
def test_lines_that_only_look_alike_are_not_joined(lines: list[str]) -> None:
    assert unwrapped(lines) == lines


def test_a_short_log_that_may_have_been_wrapped_has_other_readings() -> None:
    line = (
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"
    )
    for parts in (cut_anywhere(line, 50), cut_between_words(line, 60)):
        assert line in [log.text for log in read_text("\n".join(parts)).other_readings]
        root = explained("\n".join(parts)).root_causes[0]
        assert root.cause == "cuda-runtime-missing"
    assert not read_text(line).other_readings
    assert not read_text("\n".join(f"{'x' * 60} {n}" for n in range(300))).other_readings


def test_a_prefix_nobody_has_heard_of_is_learnt_from_the_traceback() -> None:
    lines = [
        "worker-07 {attempt 1} @12:00:01.5 :: Traceback (most recent call last):",
        'worker-07 {attempt 1} @12:00:01.6 ::   File "a.py", line 1, in <module>',
        "worker-07 {attempt 1} @12:00:02.1 :: KeyError: 'x'",
        "something else",
    ]
    assert [text for _, text in unprefixed(list(enumerate(lines)))] == [
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in <module>',
        "KeyError: 'x'",
        "something else",
    ]


def test_the_name_before_ipythons_header_is_no_prefix() -> None:
    line = "ValueError                                Traceback (most recent call last)"
    assert unprefixed([(1, line)]) == [(1, line)]


@each(
    ("margin", "text"),
    [
        ("    ", "alpha\n  beta\ngamma"),
        ("0: ", "alpha\n  beta\ngamma"),
    ],
)
def test_what_stands_before_every_line_is_left_out(margin: str, text: str) -> None:
    shifted = "\n".join(f"{margin}{line}" for line in text.splitlines())
    assert read_text(shifted).text == text
    assert read_text(f"{shifted}\nmore").text == f"{shifted}\nmore", "not before the last line"
    assert read_text(f"{margin}a\n{margin}b").text == f"{margin}a\n{margin}b", "too few lines"


def test_what_follows_a_progress_bar_is_a_line_of_its_own() -> None:
    bar = "  0%|          | 0/1256 [00:00<?, ?it/s]"
    assert cleaned(f"{bar}LLVM ERROR: Cannot select".encode()) == [bar, "LLVM ERROR: Cannot select"]


def test_the_reason_of_a_line_of_json_follows_its_message() -> None:
    record = {"level": "error", "msg": "inference failed", "error": "CUDA error: out of memory"}
    expected = ["inference failed: CUDA error: out of memory"]
    assert cleaned(json.dumps(record).encode()) == expected


@each(
    ("line", "text"),
    [
        ("2024-05-05T05:05:05.1234567Z CUDA error: out of memory", "CUDA error: out of memory"),
        ("2024-05-05T05:05:05.123456789Z stderr F Device mapping: none", "Device mapping: none"),
        ("2024-05-05T05:05:05.123+00:00 box kernel: NVRM: Xid 79", "NVRM: Xid 79"),
        ("2024-05-05T05:05:05.123+00:00 node-1 trainer: KeyError: 1", "KeyError: 1"),
        ("2024-05-05T05:05:05.123+00:00 box trainer[12]: KeyError: 1", "KeyError: 1"),
    ],
)
def test_two_words_before_a_colon_are_a_host_and_a_program_only_if_they_look_so(
    line: str, text: str
) -> None:
    assert cleaned(line.encode()) == [text]
