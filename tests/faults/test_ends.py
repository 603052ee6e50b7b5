"""whygpu ends as it should if it is stopped, and if its streams are closed or full."""

from __future__ import annotations

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.cli.test_lint import DEFECT
from tests.cli.test_main import saved, shell
from tests.patience import PATIENCE, wait_until

__all__ = ["saved"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_being_stopped_while_a_framework_hangs_leaves_nothing_behind(
    tmp_path: pathlib.Path, number: signal.Signals, code: int
) -> None:
    """A real signal, with a framework whose import never ends."""
    site = tmp_path / "site"
    (site / "torch").mkdir(parents=True)
    note = tmp_path / "pid"
    (site / "torch" / "__init__.py").write_text(
        f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(300)\n"
    )
    (site / "torch-2.13.0.dist-info").mkdir()
    (site / "torch-2.13.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: torch\nVersion: 2.13.0\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "whygpu", "check", "--python", sys.executable],
        env={**os.environ, "PYTHONPATH": str(site)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: note.exists() and note.read_text(), process)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "Traceback" not in out + err
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_a_search_for_a_batch_that_is_stopped_says_what_it_has_seen(tmp_path: pathlib.Path) -> None:
    note, step = tmp_path / "tried", tmp_path / "train.py"
    step.write_text(
        "import time\n\ndef step(batch_size):\n    if batch_size > 8:\n"
        f"        open({str(note)!r}, 'w').close()\n        time.sleep(300)\n"
    )
    words = ["memory", "find", f"{step}:step", "--device", "cpu", "--limit", "2GiB", "--no-cache"]
    process = subprocess.Popen(
        [sys.executable, "-m", "whygpu", *words, "--python", sys.executable],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_until(note.exists, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert out == ""
    assert "up to now 8 fits" in err


def test_a_closed_pipe_is_no_bug(saved: Any) -> None:
    done = shell(f"check --json --snapshot {shlex.quote(saved())} | head -c 10")
    assert (done.stdout[:1], done.stderr) == ("{", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing_but_where_the_answer_goes(saved: Any, closed: str) -> None:
    done = shell(f"check --snapshot {shlex.quote(saved())} {closed}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("✓") == (">&-" not in closed.replace("2>&-", ""))


def test_nowhere_to_read_a_snapshot_from_is_wrong_usage() -> None:
    done = shell("check --snapshot - <&-")
    assert done.returncode == 2
    assert "is no snapshot" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_full_disk_is_said_and_is_no_bug(saved: Any) -> None:
    done = shell(f"check --snapshot {shlex.quote(saved())} > /dev/full")
    assert done.returncode == 2
    assert done.stderr == "whygpu: cannot write to standard output: No space left on device\n"


def wait_for_workers(pid: int) -> None:
    """Until it has started them, and they are at work; where none can be seen, a second."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        if children.exists() and len(children.read_text().split()) > 1:
            break
        time.sleep(0.02)
    time.sleep(0.2)


def test_an_interrupt_ends_every_process(tmp_path: pathlib.Path) -> None:
    for number in range(250):
        (tmp_path / f"f{number}.py").write_text(DEFECT + "x = [1, 2, 3]\n" * 3000)
    command = [sys.executable, "-m", "whygpu", "lint", str(tmp_path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    wait_for_workers(process.pid)
    os.killpg(process.pid, signal.SIGINT)
    out, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, (out, error)
    assert b"Traceback" not in error
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
