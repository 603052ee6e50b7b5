"""Standard error passes through whatever whoever starts us, or reads us, is like."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.launch.programs import (
    PYTHON,
    QUIET,
    WHYGPU,
    Terminal,
    environment,
    script,
    unread,
)
from tests.patience import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")

LINES = 3000
MANY = f"import sys\nfor i in range({LINES}): sys.stderr.write('%0100d\\n' % i)\nsys.exit(3)\n"
WRITTEN = "".join(f"{i:0100d}\n" for i in range(LINES)).encode()


def test_a_request_that_is_never_granted_is_told_while_the_program_runs(tmp_path: Path) -> None:
    program = script(
        tmp_path,
        "import sys, time\n"
        "words = '/job:localhost/replica:0/task:0/device:GPU:0 with 3072 MB memory: -> device: 0'\n"
        "sys.stderr.write('Created device %s\\n' % words)\n"
        "words = 'ran out of memory trying to allocate 5.00GiB (rounded to 5368709120)'\n"
        "sys.stderr.write('Allocator (GPU_0_bfc) %srequested by op A\\n' % words)\n"
        "sys.stdin.readline()\n",
    )
    process = subprocess.Popen(
        [*WHYGPU, "--device", "cpu", "--", PYTHON, str(program)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    lines = [process.stderr.readline() for _ in range(3)]
    assert lines[2].startswith("whygpu: TensorFlow asked for 5 GiB of GPU memory at once, and its")
    assert "limit is 3 GiB" in lines[2]
    process.stdin.close()
    assert process.wait(PATIENCE) == 0
    process.stderr.close()


def wait_until_full(pipe: int) -> None:
    """Until it holds something, and nothing is added any more."""
    deadline = time.monotonic() + PATIENCE
    before, now = 0, unread(pipe)
    while (now == 0 or now != before) and time.monotonic() < deadline:
        time.sleep(0.05)
        before, now = now, unread(pipe)


def test_a_reader_that_does_not_let_us_wait(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    argv = [*QUIET, PYTHON, str(script(tmp_path, MANY))]
    process = subprocess.Popen(argv, stderr=writer, env=environment())
    os.close(writer)
    wait_until_full(reader)
    with os.fdopen(reader, "rb") as file:
        assert file.read() == WRITTEN
    assert process.wait(PATIENCE) == 3


def test_a_slow_reader_has_the_programs_words_before_ours(tmp_path: Path) -> None:
    argv = [*WHYGPU, "--device", "cpu", "--", PYTHON, str(script(tmp_path, MANY))]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, env=environment())
    assert process.stderr is not None
    wait_until_full(process.stderr.fileno())
    with process.stderr as file:
        text = file.read()
    assert text.startswith(WRITTEN)
    assert b"whygpu: " in text[len(WRITTEN) :]
    assert process.wait(PATIENCE) == 3


def test_more_than_a_thousand_open_files(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip("not that many may be opened here")
    program = script(tmp_path, MANY)
    opener = (
        "import os, resource, sys\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, (2000, {hard}))\n"
        "for i in range(1100): os.set_inheritable(os.open('/dev/null', 0), True)\n"
        "os.execv(sys.argv[1], sys.argv[1:])\n"
    )
    argv = [PYTHON, "-c", opener, *QUIET, PYTHON, str(program)]
    done = subprocess.run(argv, capture_output=True, env=environment(), timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (3, WRITTEN)


def test_started_where_the_end_of_children_is_ignored() -> None:
    done = subprocess.run(
        [*QUIET, PYTHON, "-c", "import signal, sys; sys.exit(int(signal.getsignal(17)) + 4)"],
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        env=environment(),
        timeout=PATIENCE,
    )
    assert done.returncode == int(signal.SIG_IGN) + 4


def test_what_outlives_the_program_holds_only_what_it_has(tmp_path: Path) -> None:
    """It has standard error; whoever reads standard output is not kept waiting for it."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    reader, writer = os.pipe()
    argv = [*QUIET, "/bin/sh", "-c", f"(cat {gate}; echo late >&2) >/dev/null & echo now"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=writer, env=environment())
    os.close(writer)
    assert process.stdout is not None
    with process.stdout as file:
        assert file.read() == b"now\n"
    gate.write_text("")
    assert process.wait(PATIENCE) == 0
    with os.fdopen(reader, "rb") as file:
        assert file.read() == b"late\n"


def test_what_a_program_sets_on_its_terminal_holds_for_the_keyboard() -> None:
    """A key is read without Enter and without echo, and afterwards all is as it was."""
    code = (
        "import sys, termios, time, tty\n"
        "before = termios.tcgetattr(1)\n"
        "tty.setcbreak(1)\n"
        "time.sleep(0.3)\n"
        "print('press', flush=True)\n"
        "key = sys.stdin.read(1)\n"
        "termios.tcsetattr(1, termios.TCSADRAIN, before)\n"
        "print('key', ord(key))\n"
    )
    shown = []
    for argv in ([PYTHON, "-c", code], [*QUIET, PYTHON, "-c", code]):
        terminal = Terminal(argv)
        terminal.wait_for(b"press")
        terminal.type(b"x")
        shown.append(terminal.end())
    assert shown[0] == shown[1]
    assert b"key 120" in shown[1][1]
