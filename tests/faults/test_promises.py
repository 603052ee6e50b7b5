"""The promises notice what breaks them: each is shown an outcome that does."""

from __future__ import annotations

import json
import pathlib

import pytest

from tests.faults import promises
from tests.faults.case import Case, Script
from tests.faults.sandbox import Outcome, Sandbox

KEPT = Outcome(
    case=Case(("explain", "--json")),
    code=1,
    timed_out=False,
    peak_kib=50_000,
    left=(),
    temporary=(),
    stdout=b"",
    stderr=b"",
    before={"a.log": b"x"},
    after={"a.log": b"x"},
)


def _offering(command: str) -> bytes:
    return json.dumps({"remedies": [{"text": "", "command": command}]}).encode()


BROKEN = {
    "the_exit_code_keeps_the_contract": KEPT._replace(code=3),
    "there_is_no_traceback": KEPT._replace(stderr=b"Traceback (most recent call last):\n"),
    "no_escape_sequence_comes_out": KEPT._replace(stdout=b"\x1b]0;title\x07"),
    "no_secret_comes_out": KEPT._replace(case=Case((), secrets=("hunter22",)), stdout=b"hunter22"),
    "files_change_wholly_or_not_at_all": KEPT._replace(after={"a.log": b""}),
    "nothing_is_left_behind": KEPT._replace(left=("sleep 300",)),
    "memory_is_bounded": KEPT._replace(peak_kib=400_000),
    "json_obeys_its_schema": KEPT._replace(stdout=b'{"schema": "none"}'),
    "commands_do_what_they_say": KEPT._replace(stdout=_offering("pip install x;:>pwned;")),
}


@pytest.mark.parametrize("promise", promises.PROMISES, ids=lambda promise: promise.__name__)
def test_a_promise_sees_when_it_is_broken(promise: promises.Promise) -> None:
    assert list(promise(BROKEN[promise.__name__]))
    assert not list(promise(KEPT))


def test_a_quoted_word_is_no_attack() -> None:
    harmless = KEPT._replace(stdout=_offering("pip install 'x;:>pwned;'"))
    assert not list(promises.commands_do_what_they_say(harmless))


def test_no_program_is_started_by_its_path(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\n: > {tmp_path}/started\n")
    program.chmod(0o755)
    for command in (str(program), f"cd {tmp_path} && ./program", f"exec {program}"):
        assert not list(
            promises.commands_do_what_they_say(KEPT._replace(stdout=_offering(command)))
        )
    assert not (tmp_path / "started").exists()


def test_a_process_that_outlives_its_start_is_seen_and_ended() -> None:
    # The program leaves a process in a session of its own and is not waited for.
    program = Script(b"#!/bin/sh\n(setsid sleep 77 >/dev/null 2>&1 &)\nexit 5\n")
    with Sandbox() as sandbox:
        outcome = sandbox.run(Case(("run", "--no-repair", "--", "./program"), {"program": program}))
        again = sandbox.run(Case(("--version",)))
    assert outcome.code == 5
    assert any("sleep 77" in name for name in outcome.left)
    assert again.code == 0
    assert not again.left
