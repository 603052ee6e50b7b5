"""Probes that crash, hang, flood and fork, in a plain Python."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.patience import PATIENCE, stopped_in_time, wait_until
from whygpu.model.observed import Known, Unknown
from whygpu.model.probe import Probe, ProbeName
from whygpu.probes.probe_process import ProbeProcess
from whygpu.probes.runner import ProgressEvent, probes_for, run_probes

pytestmark = pytest.mark.slow
"""Each test starts programs."""

PLENTY = 10**12
HELD_UP = 60
"""Seconds: far more than anything here takes, and less than what would have to be waited for."""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a probe script with the given body."""

    def write(body: str, name: str = "script") -> Path:
        path = tmp_path / f"{name}.py"
        head = "import os, signal, subprocess, sys, time\ndef probe(report, sums):\n"
        path.write_text(head + textwrap.indent(textwrap.dedent(body), "    "))
        return path

    return write


def run(script: Path, *, timeout: float = 20.0, environ: Mapping[str, str] | None = None) -> Probe:
    (probe,) = run_probes(
        sys.executable,
        ["torch"],
        timeout=timeout,
        environ={**os.environ, **(environ or {})},
        memory_available=None,
        scripts={"torch": script},
    )
    return probe


def is_alive(pid: int) -> bool:
    try:
        # A zombie that nobody has collected yet is dead enough.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_probe_that_ends_well(write: Callable[..., Path]) -> None:
    probe = run(
        write("""
            report.version("1.0")
            report.devices([("cuda:0", "A GPU"), ("cpu", "")])
            report.operate("matmul", "cuda:0", lambda: ("cpu", True))
            os.write(2, b"native line\\n")
            print("printed")
        """)
    )
    assert (probe.ended, probe.how, probe.stage) == ("finished", "", "matmul cuda:0")
    assert probe.version == Known("1.0", "torch probe")
    assert isinstance(probe.devices, Known)
    assert [(device.name, device.kind) for device in probe.devices.value] == [
        ("cuda:0", "gpu"),
        ("cpu", "cpu"),
    ]
    (operation,) = probe.operations
    assert (operation.requested, operation.ran_on, operation.kind) == (
        "cuda:0",
        Known("cpu", "torch probe"),
        "cpu",
    )
    assert probe.log == ("native line", "printed")
    assert not probe.log_cut
    assert 0 < probe.seconds < 20


def test_a_probe_that_takes_more_memory_than_the_machine_can_spare(
    write: Callable[..., Path],
) -> None:
    script = write('report.stage("import"); held = bytearray(300 << 20); time.sleep(20)')
    (probe,) = run_probes(
        sys.executable,
        ["torch"],
        timeout=20.0,
        environ=os.environ,
        memory_available=400 << 20,
        scripts={"torch": script},
    )
    assert (probe.ended, probe.stage) == ("over-limit", "import")
    assert probe.how == "more than 200 MiB of main memory"


def test_work_that_fails_is_a_result_and_the_probe_goes_on(write: Callable[..., Path]) -> None:
    probe = run(
        write("""
            def fail():
                raise RuntimeError("out of\\n  memory")
            report.operate("matmul", "cuda:0", fail)
            report.operate("convolution", "cuda:0", lambda: ("cuda:0", False))
        """)
    )
    assert probe.ended == "finished"
    failed, wrong = probe.operations
    assert failed.ran_on == failed.correct == Unknown("RuntimeError: out of memory")
    assert failed.kind == "gpu"
    assert wrong.correct == Known(False, "torch probe")
    assert "RuntimeError: out of" in probe.log


@pytest.mark.parametrize("name", ["SIGILL", "SIGSEGV", "SIGFPE", "SIGABRT", "SIGKILL"])
def test_death_by_signal_keeps_what_was_known(write: Callable[..., Path], name: str) -> None:
    probe = run(
        write(f"""
            report.version("1.0")
            report.stage("convolution cuda:0")
            os.kill(os.getpid(), signal.{name})
            time.sleep(20)
        """)
    )
    assert (probe.ended, probe.how, probe.stage) == ("signal", name, "convolution cuda:0")
    assert probe.version == Known("1.0", "torch probe")
    assert probe.devices == Unknown(f"the torch probe ended in stage 'convolution cuda:0': {name}")


@pytest.mark.parametrize("leave", ["os._exit(3)", "sys.exit(3)"])
def test_an_exit_without_a_finished_report(write: Callable[..., Path], leave: str) -> None:
    probe = run(write(f'report.stage("import")\n{leave}'))
    assert (probe.ended, probe.how, probe.stage) == ("exit", "exit code 3", "import")


def test_an_exception_that_cannot_be_shown_is_still_one(write: Callable[..., Path]) -> None:
    probe = run(
        write("""
            class Shy(Exception):
                def __str__(self):
                    raise ValueError
            raise Shy
        """)
    )
    assert (probe.ended, probe.how) == (
        "exception",
        "Shy: its message cannot be shown (ValueError)",
    )


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "GeneratorExit", "BaseException"])
def test_an_exception_outside_the_usual_family_is_one(
    write: Callable[..., Path], error: str
) -> None:
    probe = run(write(f'raise {error}("told to stop")'))
    assert (probe.ended, probe.how) == ("exception", f"{error}: told to stop")


def test_half_characters_in_a_message_are_made_whole(write: Callable[..., Path]) -> None:
    probe = run(write(r'raise RuntimeError("\udcff \x1b[31m")'))
    probe.how.encode()
    assert "\x1b" not in probe.how


def test_even_a_clean_exit_is_not_a_finish(write: Callable[..., Path]) -> None:
    probe = run(write("os._exit(0)"))
    assert (probe.ended, probe.how) == ("exit", "exit code 0")


def test_a_crash_at_exit_does_not_undo_the_work(write: Callable[..., Path]) -> None:
    probe = run(
        write("""
            import atexit
            atexit.register(os.kill, os.getpid(), signal.SIGSEGV)
            report.version("1.0")
        """)
    )
    assert (probe.ended, probe.how) == ("finished", "")
    assert probe.fact("after the work") == "SIGSEGV"


def test_an_exception_comes_with_its_whole_chain(write: Callable[..., Path]) -> None:
    probe = run(
        write("""
            report.stage("import")
            try:
                import no_such_backend
            except ImportError:
                raise ImportError("Keras cannot be imported. Check that it is installed.")
        """)
    )
    assert (probe.ended, probe.stage) == ("exception", "import")
    assert probe.how == "ImportError: Keras cannot be imported. Check that it is installed."
    cause = "ModuleNotFoundError: No module named 'no_such_backend'"
    assert cause in probe.traceback
    assert probe.fact("first exception") == cause


def test_a_message_that_quotes_a_traceback_gives_way_to_the_quoted_error(
    write: Callable[..., Path],
) -> None:
    probe = run(
        write("""
            import traceback
            try:
                raise ImportError("libcublas.so.9.0: cannot open shared object file")
            except ImportError:
                raise ImportError(traceback.format_exc() + "Failed to load the runtime.")
        """)
    )
    assert probe.how == "ImportError: libcublas.so.9.0: cannot open shared object file"


def test_an_exception_without_words_shows_the_line_that_raised_it(
    write: Callable[..., Path],
) -> None:
    script = write("assert report is None")
    probe = run(script)
    assert probe.how == f"AssertionError: assert report is None ({script}, line 3)"


def test_a_traceback_is_bounded(write: Callable[..., Path]) -> None:
    probe = run(
        write("""
            def ping(n): return pong(n)
            def pong(n): return ping(n)
            ping("x" * 1_000_000)
        """)
    )
    assert probe.ended == "exception"
    assert probe.how.startswith("RecursionError")
    assert 100 < len(probe.traceback) <= 201
    assert max(map(len, probe.traceback)) <= 2000


def test_a_hang_ends_with_its_forked_children(write: Callable[..., Path]) -> None:
    script = write("""
        child = os.fork()
        if child == 0:
            time.sleep(600)
        grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        report.fact("pids", "%d %d" % (child, grandchild.pid))
        report.stage("devices")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    """)
    probe, limit = stopped_in_time(
        lambda limit: run(script, timeout=limit),
        lambda probe: (probe.ended, probe.stage) == ("timed-out", "devices"),
    )
    assert (probe.ended, probe.how, probe.stage) == ("timed-out", f"{limit:g} s", "devices")
    pids = [int(pid) for pid in (probe.fact("pids") or "").split()]
    assert len(pids) == 2
    wait_until(lambda: not any(map(is_alive, pids)))


def test_children_left_behind_neither_hold_us_up_nor_live_on(write: Callable[..., Path]) -> None:
    began = time.monotonic()
    script = write("""
        child = os.fork()
        if child == 0:
            time.sleep(600)
        report.fact("pid", child)
    """)
    probe = run(script, timeout=PATIENCE)
    assert time.monotonic() - began < HELD_UP
    assert probe.ended == "finished"
    wait_until(lambda: not is_alive(int(probe.fact("pid") or 0)))


def test_a_descendant_that_left_the_group_and_keeps_writing_does_not_hold_us_up(
    write: Callable[..., Path],
) -> None:
    began = time.monotonic()
    script = write("""
        if os.fork() == 0:
            os.setsid()
            end = time.time() + 120
            while time.time() < end:
                os.write(2, b"still here\\n" * 100)
            os._exit(0)
        time.sleep(0.1)
    """)
    probe = run(script, timeout=PATIENCE)
    assert time.monotonic() - began < HELD_UP
    assert probe.ended == "finished"


def test_a_flood_is_drained_and_cut(write: Callable[..., Path]) -> None:
    probe = run(
        write("""
            os.write(2, b"first line\\n")
            block = b"flood of text\\n" * 5000
            for _ in range(500):
                os.write(2, block)
                os.write(1, block)
            os.write(2, b"last line\\n")
        """)
    )
    assert probe.ended == "finished"
    assert probe.log_cut
    assert (probe.log[0], probe.log[-1]) == ("first line", "last line")
    assert sum(map(len, probe.log)) < 70_000


def test_garbage_on_the_result_descriptor_spoils_only_itself(write: Callable[..., Path]) -> None:
    probe = run(
        write("""
            stream = report._stream
            report.version("1.0")
            stream.write("garbage\\n{}\\n" + "x" * 1_000_000 + "\\n")
            report.fact("after", "garbage")
            stream.write('{"devices": {"known": [')
            stream.flush()
            os._exit(1)
        """)
    )
    assert (probe.ended, probe.how) == ("exit", "exit code 1")
    assert probe.version == Known("1.0", "torch probe")
    assert probe.fact("after") == "garbage"
    assert isinstance(probe.devices, Unknown)


def test_a_closed_result_descriptor_does_not_make_us_spin(write: Callable[..., Path]) -> None:
    used = time.process_time()
    probe = run(write("os.close(report._stream.fileno()); time.sleep(1); os._exit(0)"))
    assert probe.ended == "exit"
    assert time.process_time() - used < 0.5


@pytest.mark.parametrize("kind", ["missing", "no program", "not executable"])
def test_an_interpreter_that_cannot_be_started(tmp_path: Path, kind: str) -> None:
    python = tmp_path / "python"
    if kind != "missing":
        python.write_bytes(b"\x00not a program")
        python.chmod(0o755 if kind == "no program" else 0o644)
    (probe,) = run_probes(
        str(python), ["torch"], timeout=5, environ=os.environ, memory_available=None
    )
    assert probe.ended == "not-started"
    assert str(python) in probe.how
    assert isinstance(probe.version, Unknown)


def test_an_interpreter_that_fails_before_it_runs_anything(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    probe = run(write("pass"), environ={"PYTHONHOME": str(tmp_path)})
    assert probe.ended == "not-started"
    assert probe.how.startswith("exit code")
    assert any("encodings" in line for line in probe.log)


def test_the_target_imports_as_the_users_programs_do(
    write: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "torch.py").write_text("__version__ = 'from PYTHONPATH'")
    probe = run(
        write("""
            import torch
            report.version(torch.__version__)
            report.fact("paths", os.pathsep.join(sys.path))
            report.fact("stdin", repr(sys.stdin.read()))
            report.fact("core", __import__("resource").getrlimit(4)[0])
            report.fact("open", sorted(os.listdir("/proc/self/fd"), key=int)[:-1])
            report.fact("session", os.getsid(0) == os.getpid())
        """),
        environ={"PYTHONPATH": str(tmp_path / "own")},
    )
    assert probe.version == Known("from PYTHONPATH", "torch probe")
    assert "probes/scripts" not in (probe.fact("paths") or "")
    assert probe.fact("stdin") == "''"
    assert probe.fact("core") == "0"
    assert len((probe.fact("open") or "").split(",")) == 4  # three standard ones, and the result's
    assert probe.fact("session") == "True"


def names_and_kinds(events: list[ProgressEvent]) -> list[tuple[str, str]]:
    return [(event.probe, event.kind) for event in events if event.kind != "stage"]


@pytest.mark.parametrize(
    ("memory", "side_by_side"), [(PLENTY, True), (2 * 10**9, False), (None, False)]
)
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_side_by_side_only_where_memory_is_known_to_suffice(
    write: Callable[..., Path], memory: int | None, side_by_side: bool
) -> None:
    names: list[ProbeName] = ["torch", "jax"]
    events: list[ProgressEvent] = []
    script = write('report.stage("devices"); time.sleep(0.15)')
    probes = run_probes(
        sys.executable,
        names,
        timeout=20,
        environ=os.environ,
        memory_available=memory,
        on_progress=events.append,
        scripts=dict.fromkeys(names, script),
    )
    assert [probe.name for probe in probes] == names
    assert ProgressEvent("torch", "stage", "devices") in events
    order = names_and_kinds(events)
    assert (order[1] == ("jax", "started")) is side_by_side
    assert sorted(order) == [
        (name, kind) for name in sorted(names) for kind in ("ended", "started")
    ]


def test_every_mixture_of_ends_comes_back_in_order(write: Callable[..., Path]) -> None:
    scripts: dict[ProbeName, Path] = {
        "cuda": write("time.sleep(60)", "hang"),
        "tensorflow": write("os.abort()", "crash"),
        "keras": write("raise ValueError('no')", "raise"),
        "jax": write("sys.exit(1)", "exit"),
        "torch": write("pass", "fine"),
    }
    expected = ["timed-out", "signal", "exception", "exit", "finished"]

    def ends(limit: float) -> list[str]:
        probes = run_probes(
            sys.executable,
            list(scripts),
            timeout=limit,
            environ=os.environ,
            memory_available=PLENTY,
            scripts=scripts,
        )
        assert [probe.name for probe in probes] == list(scripts)
        return [probe.ended for probe in probes]

    found, _ = stopped_in_time(ends, lambda found: found == expected)
    assert found == expected


def test_ctrl_c_kills_the_probes_and_goes_on_up(write: Callable[..., Path], tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = write(f'open({str(note)!r}, "w").write(str(os.getpid())); time.sleep(60)')

    def interrupt() -> None:
        wait_until(lambda: note.exists() and note.read_text())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run(script)
    thread.join()
    assert not is_alive(int(note.read_text()))


class OutOfReach(ProbeProcess):
    """As a process that is stuck in the kernel: a kill has no effect on it."""

    dying_seconds = 0.2

    def _send_kill(self) -> None:
        pass


def test_a_process_that_cannot_be_killed_is_let_go(write: Callable[..., Path]) -> None:
    script = write('report.stage("devices"); time.sleep(600)')

    def let_go(limit: float) -> tuple[Probe, int]:
        process = OutOfReach(
            "torch", sys.executable, script, timeout=limit, environ=os.environ, memory_limit=None
        )
        wait_until(process.tend)
        probe = process.end()
        assert process._process.poll() is None, "it was waited for"
        process._process.kill()
        process._process.wait()
        return probe, process._process.pid

    came_far = ("timed-out", "devices")
    (probe, pid), limit = stopped_in_time(
        let_go, lambda found: (found[0].ended, found[0].stage) == came_far
    )
    assert (probe.ended, probe.stage) == came_far
    assert probe.how == f"{limit:g} s; process {pid} cannot be killed"


def test_probes_are_those_of_the_frameworks_found() -> None:
    assert probes_for(["torch", "cupy", "tensorflow"], cuda=False) == ("tensorflow", "torch")
    assert probes_for([], cuda=True) == ("cuda",)
