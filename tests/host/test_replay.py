"""A transcript replays what was recorded, refuses what was not, and must be used up."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.patience import stopped_in_time
from whygpu import ReplayHost
from whygpu.host.local import LocalHost
from whygpu.host.replay import NotConsumed, NotRecorded, RecordingHost
from whygpu.model.observed import Absent, Known, Unknown

PLATFORM = {
    "system": "Linux",
    "kernel": "6.8",
    "machine": "x86_64",
    "cores": 2,
    "python": "/usr/bin/python3",
    "libc": "glibc 2.39",
    "home": "/home/someone",
    "user": "someone",
    "host_name": "box",
}


def test_what_was_recorded_is_replayed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").write_bytes(b"text \xff")
    questions: tuple[Callable[[Any], Any], ...] = (
        lambda host: host.read(f"{tmp_path}/a"),
        lambda host: host.read_bytes(f"{tmp_path}/a"),
        lambda host: host.read(f"{tmp_path}/none"),
        lambda host: host.list(str(tmp_path)),
        lambda host: host.stat(f"{tmp_path}/a"),
        lambda host: host.disk(str(tmp_path)),
        lambda host: host.elf(f"{tmp_path}/a"),
        lambda host: host.elf("/bin/sh"),
        lambda host: host.symbols("/bin/sh"),
        lambda host: host.gpu_code("/bin/sh"),
        lambda host: host.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout=10),
        lambda host: host.run(["no-such-command-anywhere"], timeout=10),
    )
    recording = RecordingHost(LocalHost())
    live = [question(recording) for question in questions]
    replay = ReplayHost(json.loads(json.dumps(recording.transcript)))
    assert [question(replay) for question in questions] == live
    assert replay.platform == recording.platform
    assert replay.environ == recording.environ
    replay.assert_consumed()


def test_an_unused_answer_fails() -> None:
    host = ReplayHost({"platform": PLATFORM, "answers": {"read /a": {"absent": "/a"}}})
    with pytest.raises(NotConsumed, match="read /a"):
        host.assert_consumed()
    assert host.read("/a") == Absent("/a")
    host.assert_consumed()


def test_a_question_beyond_the_transcript_fails_unless_allowed() -> None:
    with pytest.raises(NotRecorded, match="read /b"):
        ReplayHost({"platform": PLATFORM}).read("/b")
    assert ReplayHost({"platform": PLATFORM}, absent=("read",)).read("/b") == Absent("/b")


def test_answers_may_be_unknown() -> None:
    host = ReplayHost(
        {"platform": PLATFORM, "answers": {"list /a": {"unknown": "/a: permission denied"}}}
    )
    assert host.list("/a") == Unknown("/a: permission denied")


def test_a_command_with_output_and_a_code() -> None:
    done = LocalHost().run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout=10)
    assert isinstance(done, Known)
    assert (done.value.code, done.value.stdout, done.value.stderr) == (3, "out\n", "err\n")


def test_a_command_that_hangs_is_given_up_with_its_children() -> None:
    command = ["sh", "-c", "echo early; sleep 600 & wait"]
    done, _ = stopped_in_time(
        lambda limit: LocalHost().run(command, timeout=limit),
        lambda done: isinstance(done, Known),
    )
    assert isinstance(done, Known)
    assert done.value.timed_out


@pytest.mark.parametrize("path", ["a\0b", "/proc/self/mem"])
def test_files_that_cannot_be_read_are_unknown_with_a_reason(path: str) -> None:
    answer = LocalHost().read(path)
    assert isinstance(answer, Unknown)
    assert answer.reason


def test_a_file_under_a_file_is_absent(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").write_text("")
    assert LocalHost().read(f"{tmp_path}/a/b") == Absent(f"{tmp_path}/a/b")
