"""The line on a terminal that shows what is being done."""

from __future__ import annotations

import io
import sys
import time

import pytest

from whygpu.cli import progress
from whygpu.cli.progress import showing


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_step_leaves_room_for_the_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("TERM", raising=False)
    with showing("a step with a long name, " * 5):
        time.sleep(1.05)
    lines = terminal.getvalue().split("\r\033[K")
    assert any(line.endswith(" (1 s)") for line in lines)
    assert max(map(len, lines)) < 40


def test_a_pipe_gets_a_line_from_time_to_time_if_it_takes_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    with showing("looking") as show:
        show("a short step")
    assert pipe.getvalue() == ""
    monkeypatch.setattr(progress, "FIRST_LINE", 0.1)
    with showing("looking") as show:
        time.sleep(0.2)
        for number in range(3):
            show(f"step {number}")
    assert pipe.getvalue() == "whygpu: step 0 ... (0 s)\n"
