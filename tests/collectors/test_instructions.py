"""Instructions are executed for real, and the answer of the process that does it is read."""

from __future__ import annotations

import json
import os.path
import platform
import re
import shutil
import subprocess
import sys
from typing import Any

import pytest

from tests.collectors.transcripts import host
from tests.patience import PATIENCE
from whygpu.collectors import instruction_worker as worker
from whygpu.collectors import instructions
from whygpu.collectors.system import processor
from whygpu.host.base import Completed
from whygpu.host.local import LocalHost
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.model.system import Cpu, InstructionTrial

ON_X86 = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"), reason="Linux on x86-64"
)
CPU = Cpu("x86_64", Absent("example"), Known(("amx_tile", "avx", "avx512vl"), "example"), 4)
WORKER_FOLDER = os.path.dirname(instructions.WORKER)
COMMAND = f"run /usr/bin/python3 -I -S {instructions.WORKER} avx amx_tile"


def in_worker(call: str) -> str:
    """What a function of the worker returns: in a process of its own, since it forks."""
    code = (
        f"import sys; sys.path.insert(0, {WORKER_FOLDER!r}); import instruction_worker as worker; "
    )
    command = [sys.executable, "-I", "-S", "-c", f"{code}print(worker.{call})"]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE).stdout.strip()


def answered(stdout: str, code: int = 0, timed_out: bool = False) -> Any:
    completed = Completed(code, stdout, "", timed_out)
    return instructions.tried(host({COMMAND: completed}), CPU).trials


def test_the_outcome_of_each_listed_set_that_can_be_tried() -> None:
    outcomes = {"avx": "runs", "amx_tile": "traps"}
    assert answered(json.dumps({"outcomes": outcomes})) == Known(
        (InstructionTrial("avx", "runs"), InstructionTrial("amx_tile", "traps")), "executing them"
    )


def test_another_end_than_a_trap_is_unclear() -> None:
    found = answered(json.dumps({"outcomes": {"avx": "signal 11", "amx_tile": "not-permitted"}}))
    assert [trial.outcome for trial in found.value] == ["unclear", "not-permitted"]


@pytest.mark.parametrize(
    ("stdout", "code", "timed_out", "reason"),
    [
        (
            '{"error": "no executable memory for machine code: Permission denied"}',
            0,
            False,
            "denied",
        ),
        ("", -4, False, "no answer (exit code -4)"),
        ("[1]", 0, False, "no answer"),
        ("", -9, True, "within 5 seconds"),
    ],
)
def test_no_answer_is_unknown(stdout: str, code: int, timed_out: bool, reason: str) -> None:
    found = answered(stdout, code, timed_out)
    assert isinstance(found, Unknown)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("platform", "reason"),
    [
        ({"machine": "aarch64"}, "Linux with aarch64"),
        ({"system": "Darwin", "machine": "x86_64"}, "Darwin with x86_64"),
    ],
    ids=str,
)
def test_nothing_is_executed_elsewhere(platform: dict[str, Any], reason: str) -> None:
    found = instructions.tried(host({}, **platform), CPU).trials
    assert isinstance(found, Unknown)
    assert reason in found.reason


def test_without_a_list_there_is_nothing_to_try() -> None:
    unlisted = CPU._replace(instruction_sets=Unknown("/proc/cpuinfo: permission denied"))
    assert isinstance(instructions.tried(host({}), unlisted).trials, Unknown)


def test_only_tiles_are_suspected_without_a_crash() -> None:
    assert instructions.suspected(CPU)
    assert not instructions.suspected(CPU._replace(instruction_sets=Known(("avx",), "example")))


@ON_X86
def test_what_this_processor_lists_is_executed() -> None:
    here = LocalHost()
    cpu = instructions.tried(here, processor(here))
    assert isinstance(cpu.trials, Known), cpu.trials
    assert isinstance(cpu.instruction_sets, Known)
    tried = {trial.feature: trial.outcome for trial in cpu.trials.value}
    assert tried.keys() <= set(cpu.instruction_sets.value)
    assert tried["sse4_2"] == "runs"


@ON_X86
def test_a_trap_ends_nothing_but_its_own_child() -> None:
    undefined_instruction = "0f0b"
    assert in_worker(f"executed({undefined_instruction!r})") == "traps"
    assert in_worker("executed(worker.RETURN)") == "runs"


@ON_X86
def test_another_signal_is_no_trap() -> None:
    load_from_address_zero = "31c0" + "488b00"
    assert in_worker(f"executed({load_from_address_zero!r})") == "signal 11"


@ON_X86
def test_tiles_that_this_processor_does_not_list_do_not_run() -> None:
    listed = processor(LocalHost()).instruction_sets
    if isinstance(listed, Known) and "amx_tile" in listed.value:
        pytest.skip("this processor lists amx_tile")
    assert in_worker("outcome_of('amx_tile')") == "not-permitted"
    code = "worker.LOAD_TILES + worker.RETURN"
    assert in_worker(f"executed({code}, tiles=True, ask=False)") == "traps"


@ON_X86
@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not installed")
def test_the_machine_code_is_what_its_comments_say(tmp_path: Any) -> None:
    """binutils reads every instruction as the one in the comment beside it."""
    with open(worker.__file__, encoding="utf-8") as file:
        commented = dict(re.findall(r'"([0-9a-f]{8,})",?  # \{?(\w+)', file.read()))
    code = tmp_path / "code"
    for text, name in commented.items():
        code.write_bytes(bytes.fromhex(text))
        command = ["objdump", "-D", "-b", "binary", "-m", "i386:x86-64", str(code)]
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert name in listing, listing
    assert len(commented) == len(worker.VECTOR_CODE) + len(worker.TILE_CODE) - 1 + 6
