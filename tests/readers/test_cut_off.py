"""A log that was cut in the middle of a traceback says nothing about what ended the program."""

from __future__ import annotations

import pathlib

import pytest

from tests.cases import each
from whygpu import explain
from whygpu.model.explanation import Explanation

TRAINING = "Epoch 1/5\n  1/100 [...] - loss: 2.30\n 99/100 [...] - loss: 0.31\n"
TRACEBACK = (
    "Traceback (most recent call last):\n"
    '  File "/srv/train.py", line 31, in <module>\n'
    "    main()\n"
    '  File "/srv/train.py", line 20, in main\n'
    "    model.fit(x, y)\n"
    "    ^^^^^^^^^^^^^^^\n"
)
ENDS = ("RuntimeError: bad shape\n", "KeyboardInterrupt\n", "ValueError\n", "queue.Empty\n")
LOGS = sorted((pathlib.Path(__file__).parents[1] / "logs").glob("*.log"))


def is_cut(explanation: Explanation) -> bool:
    assert "exception's own line is missing" not in explanation.headline or (
        explanation.verdict == "unknown" and explanation.exit_code == 4
    )
    return "exception's own line is missing" in explanation.headline


@pytest.mark.slow
@each("before", ["", TRAINING])
def test_a_traceback_cut_anywhere_before_its_last_line_is_not_fine(before: str) -> None:
    for place in range(len("Traceback (most recent call last)"), len(TRACEBACK) + 1):
        text = before + TRACEBACK[:place]
        assert is_cut(explain(text)), text


def test_frames_alone_are_the_middle_of_a_traceback() -> None:
    lines = TRACEBACK.splitlines(keepends=True)
    assert is_cut(explain("".join(lines[1:])))
    assert is_cut(explain("".join(lines[2:])))


@each("name", ["R", "Runtime", "torch.OutOfMemor", "tensorflow.python.framework.errors_impl.R"])
def test_half_a_name_is_no_exception(name: str) -> None:
    explanation = explain(TRAINING + TRACEBACK + name)
    assert explanation.exit_code == 4, explanation.headline


@each("end", ENDS)
def test_a_whole_traceback_is_not_cut(end: str) -> None:
    assert not is_cut(explain(TRAINING + TRACEBACK + end))
    assert not is_cut(explain(TRAINING + TRACEBACK + end + TRAINING))


def test_the_dump_of_a_crash_is_no_traceback() -> None:
    dump = (
        "Fatal Python error: Segmentation fault\n\n"
        "Current thread 0x00007f (most recent call first):\n"
        '  File "/srv/train.py", line 20 in main\n'
    )
    assert not is_cut(explain(dump))


@pytest.mark.slow
@each("path", LOGS, ids=lambda path: path.stem)
def test_no_recorded_log_is_called_cut(path: pathlib.Path) -> None:
    assert not is_cut(explain(path.read_bytes()))


@each("text", ["", "\n\n", "hello\n", "\x00\x00"])
def test_a_log_that_says_nothing_earns_no_tick(text: str) -> None:
    assert explain(text).exit_code == 4
