"""`whygpu run --profile` on real frameworks: planted bottlenecks, healthy programs, results."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from benchmarks.idle.cases import PLANTED, Planted
from benchmarks.idle.measure import outcome
from tests.patience import PATIENCE, wait_until
from tests.targets import python_of

RUN = (sys.executable, "-I", "-m", "whygpu", "run", "--device", "cpu", "--no-repair", "--profile")
SHORT = (
    ("torch_slow_storage", ""),
    ("torch_healthy_item", ""),
    ("keras_slow_tf_data", "tensorflow"),
    ("jax_slow_generator", ""),
    ("session_own_code", ""),
)


def planted(program: str, backend: str) -> Planted:
    return next(case for case in PLANTED if (case.program, case.backend) == (program, backend))


@pytest.mark.parametrize(("program", "backend"), SHORT)
def test_what_was_planted_is_named_and_nothing_else(program: str, backend: str) -> None:
    case = planted(program, backend)
    python_of(case.target)
    found = outcome(case)
    assert found.is_right, found.answer["headline"]
    assert sum(share["share"] for share in found.answer["shares"]) == pytest.approx(1, abs=0.01)


PROGRAM = """
import sys
import torch
torch.manual_seed(3)
model = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range({steps}):
    optimizer.zero_grad()
    loss = model(torch.rand(32, 64)).pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item(), sys.getswitchinterval() > 0)
"""


def run(program: str, tmp_path: pathlib.Path) -> tuple[subprocess.CompletedProcess[str], Any]:
    file = tmp_path / "program.py"
    file.write_text(program)
    report = tmp_path / "report.json"
    words = [*RUN, "--report", str(report), "--", python_of("torch"), str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    return done, json.loads(report.read_text())["profile"]


def test_the_results_are_those_of_the_bare_program(tmp_path: pathlib.Path) -> None:
    text = PROGRAM.format(steps=300)
    done, _ = run(text, tmp_path)
    bare = subprocess.run(
        [python_of("torch"), "-c", text], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout) == (0, bare.stdout)


def test_too_few_steps_are_not_judged(tmp_path: pathlib.Path) -> None:
    done, profile = run(PROGRAM.format(steps=4), tmp_path)
    assert done.returncode == 0
    assert profile["verdict"] == "no-steps"
    assert "only 4 steps of one kind were recorded" in done.stderr


def test_a_program_that_fails_is_judged_up_to_there(tmp_path: pathlib.Path) -> None:
    slow = PROGRAM.format(steps=60).replace("    loss.backward()", "    slow(); loss.backward()")
    text = f"import time\n\ndef slow():\n    time.sleep(0.03)\n{slow}\nraise SystemExit(5)\n"
    done, profile = run(text, tmp_path)
    assert done.returncode == 5
    assert profile["shares"][0]["category"] == "program"
    assert profile["shares"][0]["inside"]["text"] == "time.sleep(0.03)"


def endless(folder: pathlib.Path) -> list[str]:
    """The command for a program that writes `ready` into the folder after 200 steps."""
    file = folder / "program.py"
    text = PROGRAM.format(steps=10**9).replace("optimizer.step()", "optimizer.step(); ready()")
    ready = f"def ready():\n    if step == 200: open({str(folder / 'ready')!r}, 'w').close()\n"
    file.write_text(ready + text)
    report = str(folder / "report.json")
    return [*RUN, "--report", report, "--", python_of("torch"), str(file)]


def test_ctrl_c_ends_the_program_and_not_the_answer(tmp_path: pathlib.Path) -> None:
    process = subprocess.Popen(endless(tmp_path), stderr=subprocess.PIPE, start_new_session=True)
    wait_until((tmp_path / "ready").exists, process)
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["profile"]["window"]["made_by"] == "steps of an optimizer"


def test_a_killed_program_is_judged_by_what_was_saved(tmp_path: pathlib.Path) -> None:
    """As a scheduler does when the time of a job is over, or the kernel when memory runs out."""
    text = "import os\nopen('pid', 'w').write(str(os.getpid()))\n"
    words = endless(tmp_path)
    program = tmp_path / "program.py"
    program.write_text(text + program.read_text())
    process = subprocess.Popen(words, stderr=subprocess.PIPE, cwd=tmp_path)
    wait_until((tmp_path / "ready").exists, process)
    # Longer than until the profile is saved for the first time.
    time.sleep(6)
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.SIGKILL
    profile = json.loads((tmp_path / "report.json").read_text())["profile"]
    assert profile["window"]["made_by"] == "steps of an optimizer"
    assert profile["samples"] > 100
    assert any("a process was killed" in note for note in profile["notes"])


def test_a_program_without_an_optimizer_has_steps(tmp_path: pathlib.Path) -> None:
    text = PROGRAM.format(steps=300).replace(
        "optimizer.step()", "[p.data.add_(p.grad, alpha=-0.1) for p in model.parameters()]"
    )
    done, profile = run(text, tmp_path)
    assert done.returncode == 0
    assert profile["window"]["made_by"] == "calls of backward()"


ENDS_BY_EXEC = """
import os
import torch
model = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    optimizer.zero_grad()
    model(torch.rand(32, 64)).pow(2).mean().backward()
    optimizer.step()
os.environ["PATH"] = "/nowhere:/neither:" + os.environ["PATH"]
os.execlp("echo", "echo", "ended")
"""


def test_an_exec_that_searches_path_does_not_lose_the_profile(tmp_path: pathlib.Path) -> None:
    done, profile = run(ENDS_BY_EXEC, tmp_path)
    assert done.stdout == "ended\n"
    assert (profile["window"]["first"], profile["window"]["last"]) == (2, 20)


FORKED = """
import threading
import time
import torch
import torch.multiprocessing as multiprocessing

def train():
    torch.set_num_threads(1)
    model = torch.nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(100):
        optimizer.zero_grad()
        model(torch.rand(32, 64)).pow(2).mean().backward()
        optimizer.step()
        time.sleep(0.02)
    print(threading.active_count(), flush=True)

child = multiprocessing.get_context("fork").Process(target=train)
child.start()
child.join()
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
"""


def test_a_forked_child_that_trains_is_judged(tmp_path: pathlib.Path) -> None:
    """And whoever waits for all threads does not wait for the one that samples."""
    done, profile = run(FORKED, tmp_path)
    assert done.stdout == "1\n"
    assert profile["window"]["last"] == 100


def shares_of(profile: Any) -> dict[str, float]:
    return {each["category"]: each["share"] for each in profile["shares"]}


BATCH = """
import time
import torch
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def train_batch():
    optimizer.zero_grad()
    model(torch.rand(4, 8)).pow(2).mean().backward()
    optimizer.step()
    time.sleep(0.05)

for step in range(80):
    train_batch()
"""


def test_a_function_that_makes_the_steps_loads_no_data(tmp_path: pathlib.Path) -> None:
    """By its name it does, and the training in it is too short to be sampled."""
    _, profile = run(BATCH, tmp_path)
    assert profile["shares"][0]["category"] == "program"
    assert profile["shares"][0]["where"]["text"] == "time.sleep(0.05)"
    assert "input" not in shares_of(profile)


EPOCHS = """
import torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

def run_epoch(batches, optimizer=None):
    model.train(optimizer is not None)
    with torch.set_grad_enabled(optimizer is not None):
        for x in batches:
            loss = model(x).pow(2).mean()
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

batches = torch.rand(200, 256, 512)
for epoch in range(12):
    run_epoch(batches[:20], optimizer)
    run_epoch(batches)
"""


def test_a_model_in_evaluation_mode_is_evaluated(tmp_path: pathlib.Path) -> None:
    """The function has no name that says so, and it trains as well."""
    _, profile = run(EPOCHS, tmp_path)
    assert shares_of(profile)["evaluation"] > 0.4, profile["shares"]
    assert "input" not in shares_of(profile)
