"""`whygpu memory find` from end to end, with steps of plain Python: real processes, real memory."""

from __future__ import annotations

import bisect
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from tests.patience import PATIENCE, stopped_in_time, wait_until
from tools.schemas import find_schema
from whygpu.memory.batch_search import MOST_TRIALS

MIB = 1 << 20
LIMIT = 200
"""MiB of resident memory for the step's process."""
SAMPLE = 2
STEPS = f"""
import os, signal, sys, time
kept = []

def fill(amount):
    return os.urandom(1) * int(amount * {MIB})

def step(batch_size):
    fill(batch_size * {SAMPLE})

def make_step():
    return step

def heavy(batch_size):
    fill(500)

def leaks(batch_size):
    kept.append(fill(batch_size * 0.5))

def breaks(batch_size):
    if batch_size > 20:
        raise KeyError("unheard of")
    step(batch_size)

def refuses(batch_size):
    if batch_size > 50:
        raise MemoryError
    step(batch_size)

def killed(batch_size):
    if batch_size > 50:
        os.kill(os.getpid(), signal.SIGKILL)
    step(batch_size)

def sleeps(batch_size):
    time.sleep(600 if batch_size > 20 else 0)

def hangs(batch_size):
    open(os.environ["PID_FILE"], "w").write(str(os.getpid()))
    time.sleep(60)

def returns_nothing():
    pass

def wants(first, second):
    pass

def no_step():
    return {{"loss": 1.0}}
"""


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        jsonschema.validate(found, find_schema())
        return found

    @property
    def outcomes(self) -> dict[int, str]:
        return {trial["batch"]: trial["outcome"] for trial in self.result["trials"]}


Find = Callable[..., Said]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    (tmp_path / "steps.py").write_text(STEPS)

    def find(name: str, *options: str, address_space: int | None = None, **more: str) -> Said:
        words = [sys.executable, "-m", "whygpu", "memory", "find", f"steps.py:{name}"]
        words += ["--python", sys.executable, "--device", "cpu", *options]
        done = subprocess.run(
            words,
            cwd=tmp_path,
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), **more},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            preexec_fn=None if address_space is None else lambda: limit_to(address_space),
        )
        return Said(done.returncode, done.stdout, done.stderr)

    return find


def limit_to(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def limited(*more: str) -> tuple[str, ...]:
    return ("--limit", f"{LIMIT}MiB", "--json", *more)


def most_that_fits() -> int:
    """By the same criterion, with other means: the largest batch whose process stays below.

    VmHWM, because ru_maxrss begins with what the process that started this one holds.
    """
    code = f"import os; held = os.urandom(1) * (%d * {SAMPLE * MIB})\n"
    code += 'status = open("/proc/self/status").read().split()\n'
    code += 'print(status[status.index("VmHWM:") + 1])'

    def is_too_much(batch: int) -> bool:
        words = [sys.executable, "-c", code % batch]
        taken = subprocess.run(words, capture_output=True, check=True).stdout
        return int(taken) * 1024 > LIMIT * MIB

    return bisect.bisect_left(range(1, LIMIT), True, key=is_too_much)


@pytest.mark.parametrize("name", ["step", "make_step"])
def test_within_five_per_cent_of_the_truth(find: Find, name: str) -> None:
    said = find(name, *limited())
    assert said.code == 0, said.err
    result, truth = said.result, most_that_fits()
    assert abs(result["batch"] - truth) <= 0.05 * truth, (result["batch"], truth)
    assert len(result["trials"]) <= MOST_TRIALS
    assert said.outcomes[result["batch"]] == "fits"


def test_what_is_said_of_it(find: Find) -> None:
    said = find("step", "--limit", f"{LIMIT}MiB", "--margin", "10%", "--multiple-of", "8")
    assert said.code == 0, said.err
    found = re.match(r"✓ Batch size (\d+), with 10% of the memory left free\n", said.out)
    assert found is not None, said.out
    assert int(found[1]) % 8 == 0
    assert 0.85 * LIMIT < int(found[1]) * SAMPLE + 12 <= 0.9 * LIMIT + 8
    assert "steps.py:step on CPU; main memory 200 MiB" in said.out


def test_it_is_remembered_until_something_changes(find: Find, tmp_path: Path) -> None:
    (tmp_path / "sizes.py").write_text("MORE = 0\n")
    text = (tmp_path / "steps.py").read_text() + "\nimport sizes\n"
    (tmp_path / "steps.py").write_text(text)
    first = find("step", *limited()).result
    again = find("step", *limited("--margin", "20%")).result
    assert (first["cached"], again["cached"]) == (False, True)
    assert again["largest_run"] == first["batch"] > again["batch"]
    assert find("step", *limited("--no-cache", "--max", "8")).result["cached"] is False
    # What the file imports from beside it counts, though it is the same file.
    (tmp_path / "sizes.py").write_text("MORE = 1\n")
    assert find("step", *limited()).result["cached"] is False


def test_a_step_that_leaks_is_told_from_one_that_is_too_big(find: Find) -> None:
    leaking = find("leaks", *limited())
    assert (leaking.code, leaking.result["outcome"]) == (1, "leaks")
    assert leaking.result["batch"] is None
    assert leaking.result["trials"][-1]["leak_bytes"] == pytest.approx(4 * MIB, rel=0.1)
    big = find("heavy", *limited())
    assert (big.code, big.result["outcome"]) == (1, "nothing-fits")
    assert big.outcomes == {8: "does-not-fit", 1: "does-not-fit"}
    words = find("heavy", "--limit", f"{LIMIT}MiB").out
    assert "Not even a batch of 1 fits" in words
    assert "and the limit is 200 MiB" in words
    assert "each step keeps about 4" in find("leaks", "--limit", f"{LIMIT}MiB").out


@pytest.mark.parametrize("name", ["refuses", "killed"])
def test_memory_that_is_refused_from_within(find: Find, name: str) -> None:
    result = find(name, *limited()).result
    assert 46 <= result["batch"] <= 50, result["trials"]
    assert 51 <= result["smallest_not"] <= 56


def test_a_limit_of_address_space(find: Find) -> None:
    """`ulimit -v`, set by whoever started us: nothing is asked for, and its edge is found."""
    result = find("step", "--json", address_space=600 * MIB).result
    assert result["limit"]["name"] == "address-space"
    assert result["outcome"] == "found"
    assert len(result["trials"]) <= MOST_TRIALS
    assert 500 * MIB < result["limit"]["peak"] <= 600 * MIB


def test_any_other_exception_is_shown_and_not_taken_for_memory(find: Find) -> None:
    said = find("breaks", "--limit", f"{LIMIT}MiB")
    assert said.code == 4
    assert "failed, but not because memory ran out" in said.out
    assert "KeyError: 'unheard of'" in said.out
    assert "in breaks" in said.out
    assert "whygpu_work" not in said.out
    assert find("breaks", *limited()).result["batch"] is None


def test_main_memory_is_not_filled_unless_asked_for(find: Find) -> None:
    half = find("step", "--max", "8", "--json", "--device", "auto").result
    whole = find("step", "--max", "8", "--json").result
    said = "50% of the free main memory"
    assert any(said in note for note in half["notes"])
    assert not any(said in note for note in whole["notes"])


def test_time_is_a_limit(find: Find) -> None:
    said, _ = stopped_in_time(
        lambda limit: find("sleeps", *limited("--timeout", str(limit))),
        lambda said: said.result["largest_run"],
    )
    assert (said.code, said.result["outcome"]) == (4, "too-slow")
    assert said.result["largest_run"] == 8


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("returns_nothing", "returns_nothing() returned None; expected a Keras model, a PyTorch"),
        ("no_step", "no_step() returned a dict; expected a Keras model"),
        (
            "wants",
            "wants needs the arguments first, second: expected a function without arguments",
        ),
        ("kept", "kept is a list; expected a Keras model"),
    ],
)
def test_what_is_no_step(find: Find, name: str, words: str) -> None:
    said = find(name, "--limit", f"{LIMIT}MiB")
    assert (said.code, said.out) == (2, "")
    assert words in said.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--limit", "8"), "--limit 8: expected a unit, such as 8GiB"),
        (("--limit", "50%"), "--limit 50%: expected an amount such as 8GiB"),
        (("--margin", "100%"), "--margin 100%: expected a part of the memory"),
        (("--max", "0"), "--max 0: expected 1 or more"),
        (("--max", "4", "--multiple-of", "8"), "no multiple of 8 is that small"),
        (("--timeout", "0"), "--timeout 0: expected more than 0 seconds"),
        (("--python", "/no/python"), "/no/python: there is no such file"),
    ],
)
def test_wrong_usage(find: Find, options: tuple[str, ...], words: str) -> None:
    said = find("step", *options)
    assert (said.code, said.out) == (2, "")
    assert words in said.err


def test_ctrl_c_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(STEPS)
    pid_file = tmp_path / "pid"
    words = [sys.executable, "-m", "whygpu", "memory", "find", "steps.py:hangs", "--no-cache"]
    with subprocess.Popen(
        [*words, "--python", sys.executable, "--device", "cpu"],
        cwd=tmp_path,
        env={**os.environ, "PID_FILE": str(pid_file), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        wait_until(lambda: pid_file.exists() and pid_file.read_text(), process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err
    assert not Path(f"/proc/{pid_file.read_text()}").exists()
    assert {path.name for path in tmp_path.iterdir()} <= {"steps.py", "pid", "__pycache__"}
