"""However a task's process ends, it ends as an answer, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.patience import stopped_in_time, wait_until
from whygpu.model.task_end import TaskEnd
from whygpu.model.task_wire import (
    MemoryMessage,
    ProgramMessage,
    ProgressMessage,
    StepMessage,
    TrialRequest,
)
from whygpu.model.work import What
from whygpu.readers.allocator_state import Refusals
from whygpu.work.task_process import run_task

Run = Callable[..., TaskEnd]
BEFORE_THE_STEP = ["progress", "start", "named", "program"]
HEAD = "import os, signal, subprocess, sys, time\ndef step(batch_size):\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Does a step of this body, with the running interpreter."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def run(body: str, *, python: str = sys.executable, **options: Any) -> TaskEnd:
        file = tmp_path / "user.py"
        file.write_text(HEAD + textwrap.indent(textwrap.dedent(body), "    "))
        request = TrialRequest(What("function", str(file), "step"), pickled=None, batch=4)
        options.setdefault("timeout", 20.0)
        return run_task(request, python=python, environ=dict(os.environ), **options)

    return run


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_task_that_is_done(run: Run, tmp_path: Path) -> None:
    heard: list[str] = []
    end = run("print('to nobody')", on_progress=heard.append)
    assert (end.ended, end.how, end.traceback) == ("finished", "", "")
    assert [message.number for message in end.sent(StepMessage)] == [1, 2, 3]
    assert heard == ["loading", "step 2", "step 3"]
    assert heard == [message.text for message in end.sent(ProgressMessage)]
    assert end.error_text.count("to nobody") == 3
    assert 1 << 20 < end.peak_host_bytes < 1 << 30
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("whygpu")] == []


def test_a_request_that_is_never_granted_ends_it_at_once(run: Run) -> None:
    body = """
    sys.stderr.write("Allocator (GPU_0_bfc) ran out of memory trying to allocate 5.00GiB "
                     "(rounded to 5368709120)requested by op A\\n")
    time.sleep(100)
    """
    end = run(body, refusals=Refusals(3 << 30))
    assert (end.ended, end.seconds < 15) == ("hopeless-request", True)
    assert end.how == "asked for 5 GiB at once, and the limit is 3 GiB"


def test_an_exception_is_told_with_its_traceback(run: Run) -> None:
    end = run("raise KeyError('which')")
    assert (end.ended, end.how) == ("exception", "KeyError: 'which'")
    assert "raise KeyError('which')" in end.traceback
    assert end.sent(MemoryMessage)


def test_an_exception_that_cannot_be_shown(run: Run) -> None:
    end = run("""
        class Odd(Exception):
            def __str__(self): raise RuntimeError
        raise Odd
    """)
    assert (end.ended, end.how) == (
        "exception",
        "Odd: its message cannot be shown (RuntimeError)",
    )


@pytest.mark.parametrize(
    ("body", "ended", "how"),
    [
        ("os.abort()", "signal", "SIGABRT"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "signal", "SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "signal", "SIGSEGV"),
        ("os._exit(7)", "exit", "exit code 7"),
        ("sys.exit(0)", "exit", "exit code 0"),
    ],
)
def test_an_end_without_a_word(run: Run, body: str, ended: str, how: str) -> None:
    end = run(body)
    assert (end.ended, end.how) == (ended, how)
    assert [message.kind for message in end.messages] == BEFORE_THE_STEP


def test_more_memory_than_the_limit(run: Run) -> None:
    end = run("held = bytearray(300 << 20); time.sleep(20)", host_limit=100 << 20)
    assert (end.ended, end.seconds < 10) == ("over-limit", True)
    assert end.peak_host_bytes > 100 << 20
    assert end.how == "100 MiB"


def test_memory_of_what_it_starts_counts_as_its_own(run: Run) -> None:
    end = run(
        """
        hold = "held = bytearray(150 << 20); import time; time.sleep(20)"
        children = [subprocess.Popen([sys.executable, "-c", hold]) for _ in range(2)]
        time.sleep(20)
        """,
        host_limit=200 << 20,
    )
    assert (end.ended, end.how) == ("over-limit", "200 MiB")


def test_pages_that_forked_processes_share_count_once(run: Run) -> None:
    end = run(
        """
        held = bytearray(b"x") * (100 << 20)
        children = []
        for _ in range(4):
            children.append(os.fork())
            if children[-1] == 0:
                time.sleep(1)
                os._exit(0)
        for child in children:
            os.waitpid(child, 0)
        """,
        host_limit=250 << 20,
    )
    assert end.ended == "finished", end.how


def test_memory_that_is_only_reserved_does_not_count(run: Run) -> None:
    """CUDA and XLA reserve far more addresses than the machine has memory."""
    end = run(
        "import mmap; held = mmap.mmap(-1, 64 << 30, mmap.MAP_PRIVATE | 0x4000)",
        host_limit=200 << 20,
    )
    assert end.ended == "finished", end.how


def test_without_a_limit_it_may_take_what_the_machine_can_spare(run: Run) -> None:
    """And where the kernel has to choose, it ends the task and not somebody else's program."""
    end = run("print('score', open('/proc/self/oom_score_adj').read())")
    assert "score 1000" in end.error_text


def test_less_memory_than_the_limit(run: Run) -> None:
    assert run("held = bytearray(1 << 20)", host_limit=500 << 20).ended == "finished"


def test_more_time_than_the_limit(run: Run, tmp_path: Path) -> None:
    """What it started goes with it, and signals that it ignores do not save it."""
    pids = tmp_path / "pids"
    body = f"""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
        time.sleep(600)
    """
    end, limit = stopped_in_time(
        lambda limit: run(body, timeout=limit), lambda end: pids.exists() and pids.read_text()
    )
    assert (end.ended, end.how) == ("timed-out", f"{limit:g} s")
    wait_until(lambda: not any(is_alive(int(pid)) for pid in pids.read_text().split()))


def test_messages_that_are_none_of_ours_or_cut_short(run: Run) -> None:
    """The descriptor can be found and written to, and the last line may lack its end."""
    end = run("""
        pipes = [fd for fd in os.listdir("/proc/self/fd") if int(fd) > 2]
        for fd in map(int, pipes):
            try:
                os.write(fd, b'no json\\n[1]\\n{"kind": 7}\\n{"kind": "step", "numb')
            except OSError:
                pass
        os._exit(0)
    """)
    assert end.ended == "exit"
    assert [message.kind for message in end.messages] == BEFORE_THE_STEP


def test_output_without_end_is_cut(run: Run) -> None:
    end = run("print('x' * 50_000_000); sys.stderr.write('the last word')")
    assert end.ended == "finished"
    assert len(end.error_text) < 1 << 20
    assert end.error_text.endswith("the last word")


def test_an_interpreter_that_is_not_there(run: Run) -> None:
    end = run("pass", python="/no/such/python")
    assert (end.ended, end.messages) == ("not-started", ())
    assert "/no/such/python: No such file" in end.how


def test_ctrl_c_ends_the_task_first(run: Run, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    def interrupt() -> None:
        wait_until(lambda: pid_file.exists() and pid_file.read_text())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(f"open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)")
    thread.join()
    wait_until(lambda: not is_alive(int(pid_file.read_text())))


def test_a_file_is_loaded_as_what_it_is(tmp_path: Path) -> None:
    """A part of a package finds its neighbours; the main part of a program does not run."""
    package = tmp_path / "project" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "sizes.py").write_text("LIMIT = 5\n")
    main = package / "main.py"
    main.write_text(
        "from .sizes import LIMIT\n"
        "def step(batch_size):\n    print('name', __name__, 'limit', LIMIT)\n"
        "if __name__ == '__main__':\n    print('main part')\n"
    )
    end = run_task(
        TrialRequest(What("function", str(main), "step"), pickled=None, batch=1),
        python=sys.executable,
        environ=dict(os.environ),
        timeout=20.0,
    )
    assert end.ended == "finished", end.traceback
    assert "name project.inner.main limit 5" in end.error_text
    assert "main part" not in end.error_text
    sources = end.sent(ProgramMessage)[-1].sources
    assert {Path(path).name for path in sources} == {"__init__.py", "main.py", "sizes.py"}


HOST = '"host": {"now": 1, "peak": 1, "address_space": null, "anonymous": null, "in_use": null}'
STEP = f'"kind": "step", "step_seconds": 1.0, "device": null, {HOST}'
LIES = (
    f'{{{STEP}, "number": "one"}}',
    f"{{{STEP}}}",
    f'{{{STEP}, "number": 1}}'.replace('"peak": 1, ', ""),
    f'{{{STEP}, "number": 1}}'.replace('"device": null', '"device": [1]'),
    f'{{{STEP}, "number": 1}}'.replace("1.0", "1e400"),
    f'{{{STEP}, "number": 1, "more": 1}}',
    '{"kind": "program", "frameworks": {}, "sources": "everything"}',
    '{"kind": "progress", "text": null}',
    '{"kind": "gossip", "text": "x"}',
    '{"kind": "largest", "batch": [], "next_batch": null}',
    '{"kind": "way", "name": 1, "batch": 1, "needs_bytes": 1}',
    '{"kind": "reference", "ran": "yes", "backend": null, "reason": ""}',
)


def sending(line: str) -> str:
    """A step that writes a line where the task's own messages go."""
    return f"""
        descriptor = int(open("/proc/self/cmdline").read().split("\\0")[-2])
        os.write(descriptor, {line.encode()!r} + b"\\n")
    """


@pytest.mark.parametrize("lie", LIES)
def test_a_task_that_sends_what_it_should_not_is_not_believed(run: Run, lie: str) -> None:
    end = run(sending(lie))
    assert end.ended == "exception"
    assert end.how.startswith("what the task sent cannot be read: message")
    assert len(end.sent(StepMessage)) == 3


def test_the_lies_are_lies_by_what_was_changed_in_them(run: Run) -> None:
    assert run(sending(f'{{{STEP}, "number": 1}}')).ended == "finished"
