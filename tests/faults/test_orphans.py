"""Processes that leave the one that started them, and are ended with it all the same."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE, stopped_in_time, wait_until
from whygpu.host.orphans import MARK, Orphans
from whygpu.host.processes import children, descendants
from whygpu.model.task_wire import EstimateRequest
from whygpu.model.work import What
from whygpu.probes.runner import run_probes
from whygpu.work.task_process import run_task

ESCAPES = {
    "new session": "subprocess.Popen([*SLEEP], start_new_session=True)",
    "double fork": "os.fork() or (os.setsid(), os.fork() or os.execv(*ARGS), os._exit(0))",
    "by a shell": "subprocess.call(['sh', '-c', 'setsid \"$@\" >/dev/null 2>&1 &', 'sh', *SLEEP])",
    "its own child": "subprocess.Popen([*SLEEP]); time.sleep(0.1)",
    "a tree": "subprocess.Popen(['setsid', 'sh', '-c', '\"$@\" & \"$@\"; true', 'sh', *SLEEP])",
}
UNMARKED = {
    "no variables": "subprocess.Popen([*SLEEP], start_new_session=True, env={})",
}


def sleep_words(folder: Path) -> list[str]:
    """A command that nobody else has, to be found again by its words."""
    return [sys.executable, "-S", "-c", f"import time; time.sleep(300)  # {folder}"]


def alive(folder: Path) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes()
            except OSError:
                continue
            if f"time.sleep(300)  # {folder}".encode() in words:
                found.append(int(name))
    return found


def is_subreaper() -> bool:
    found = ctypes.c_int(0)
    ctypes.CDLL(None).prctl(37, ctypes.byref(found), 0, 0, 0)
    return bool(found.value)


def escape(folder: Path, how: str) -> str:
    words = f"SLEEP = {sleep_words(folder)!r}\nARGS = SLEEP[0], SLEEP\n"
    return f"import os, subprocess, sys, time\n{words}{how}\n"


@pytest.mark.parametrize("how", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("end", ["", "time.sleep(60)", "os.kill(os.getpid(), 9)"])
def test_nothing_that_a_probe_starts_survives_it(how: str, end: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    lines = escape(tmp_path, how) + f"open({str(started)!r}, 'w')\n{end}"
    body = "".join(f"    {line}\n" for line in lines.splitlines())
    script = tmp_path / "script.py"
    script.write_text(f"def probe(report, sums):\n{body}")
    stopped_in_time(
        lambda limit: run_probes(
            sys.executable,
            ["torch"],
            timeout=limit,
            environ=os.environ,
            memory_available=None,
            scripts={"torch": script},
        ),
        lambda _: started.exists(),
    )
    assert started.exists()
    assert alive(tmp_path) == []
    assert not is_subreaper()


def test_nothing_that_a_task_starts_survives_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(escape(tmp_path, ESCAPES["double fork"]))
    # A file that is executed for the function in it, whatever comes of that.
    end = run_task(
        EstimateRequest(What("function", str(program), "model"), batch=1, train=True),
        python=sys.executable,
        environ=os.environ,
        timeout=20,
    )
    assert end.ended in ("exception", "exit", "finished")
    assert alive(tmp_path) == []
    assert not is_subreaper()


def test_other_children_of_the_program_are_neither_killed_nor_waited_for(tmp_path: Path) -> None:
    other = subprocess.Popen(["sleep", "60"])
    quick = subprocess.Popen(["true"])
    orphans = Orphans()
    child = subprocess.Popen(["sleep", "60"], env=orphans.marked(os.environ))
    orphans.parent = child.pid
    time.sleep(0.05)
    orphans.end()
    assert is_subreaper() is False
    assert other.poll() is None
    assert quick.wait() == 0
    assert child.poll() is None, "the child itself is its owner's to end"
    for process in (other, child):
        process.kill()
        assert process.wait() == -signal.SIGKILL


def test_who_is_below_a_process() -> None:
    shell = subprocess.Popen(["sh", "-c", "sleep 60 & sleep 60 & wait"])
    try:
        wait_until(lambda: len(descendants(shell.pid)) == 2)
        assert len(children(shell.pid)) == 2
        assert shell.pid in children(os.getpid())
        assert {*descendants(shell.pid), shell.pid} <= set(descendants(os.getpid()))
    finally:
        for pid in (*descendants(shell.pid), shell.pid):
            os.kill(pid, signal.SIGKILL)
        shell.wait()
    assert descendants(shell.pid) == []


def installed_framework(folder: Path, code: str) -> Path:
    site = folder / "site"
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text(code)
    (site / "torch-2.13.0.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n"
    (site / "torch-2.13.0.dist-info" / "METADATA").write_text(metadata)
    return site


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, None])
@pytest.mark.parametrize("how", [*ESCAPES.values(), *UNMARKED.values()], ids=[*ESCAPES, *UNMARKED])
def test_nothing_survives_whygpu(how: str, number: signal.Signals | None, tmp_path: Path) -> None:
    started = tmp_path / "started"
    wait = "time.sleep(60)" if number else ""
    code = escape(tmp_path, how) + f"time.sleep(0.1)\nopen({str(started)!r}, 'w')\n{wait}\n"
    site = installed_framework(tmp_path, code)
    process = subprocess.Popen(
        [sys.executable, "-I", "-m", "whygpu", "check", "--python", sys.executable],
        env={**os.environ, "PYTHONPATH": str(site)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    if number is not None:
        wait_until(started.exists, process)
        process.send_signal(number)
    process.communicate(timeout=PATIENCE)
    assert started.exists()
    assert number is None or process.returncode == 128 + number
    assert alive(tmp_path) == []


def test_a_process_that_became_whygpu_keeps_what_it_had_started(tmp_path: Path) -> None:
    sleeping = " ".join(f"'{word}'" for word in sleep_words(tmp_path))
    whygpu = f"exec {sys.executable} -I -m whygpu check --no-probe --python {sys.executable}"
    subprocess.run(["sh", "-c", f"{sleeping} >/dev/null 2>&1 & {whygpu}"], capture_output=True)
    left = alive(tmp_path)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert len(left) == 1


def test_the_mark_is_in_the_variables_of_a_child_alone() -> None:
    before = dict(os.environ)
    orphans = Orphans()
    try:
        assert set(orphans.marked(before)) - set(before) == {MARK}
        assert dict(os.environ) == before
    finally:
        orphans.end()
