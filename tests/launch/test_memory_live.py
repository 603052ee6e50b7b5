"""What a program under `whygpu run` leaves for `whygpu memory` while it runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import whygpu

BOOTSTRAP = Path(whygpu.__path__[0]) / "launch" / "bootstrap"

TELL = """
from whygpu_bootstrap.memory import live_usage
for count in (1, 2):
    live_usage.tell([["torch", "gpu:0", count]])
live_usage.INTERVAL = 0
live_usage._state["next"] = 0
live_usage.tell([["torch", "gpu:0", 3]])
live_usage.tell([["torch", "gpu:0", 4]])
"""


def told(folder: Path, code: str) -> list[tuple[str, object]]:
    """The files that the code leaves, with what they hold."""
    reports = folder / "reports"
    settings = folder / "settings.json"
    settings.write_text("{}")
    environ = {**os.environ, "PYTHONPATH": str(BOOTSTRAP)}
    environ["WHYGPU_BOOTSTRAP_SETTINGS"] = str(settings)
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environ, capture_output=True, text=True
    )
    assert done.stderr == ""
    return [(path.suffix, json.loads(path.read_text())["in_use"]) for path in reports.glob("*")]


def test_the_last_word_is_what_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    assert told(tmp_path, TELL) == [(".in-use", [["torch", "gpu:0", 4]])]


def test_it_is_said_once_in_a_while(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    often = TELL.partition("live_usage.INTERVAL")[0]
    assert told(tmp_path, often) == [(".in-use", [["torch", "gpu:0", 1]])]


def test_a_run_that_is_over_is_not_written_to(tmp_path: Path) -> None:
    assert told(tmp_path, TELL) == []
