"""The thread that samples the program for `run --profile`: what it sees, what it leaves."""

from __future__ import annotations

import _thread
import builtins
import gc
import os
import pathlib
import signal
import sys
import threading
import time
import types
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from tests.patience import wait_until
from whygpu.launch.inprocess import bootstrap

pytestmark = pytest.mark.slow
"""Each test samples a program that computes for a while."""

code_places: Any = bootstrap("profile.code_places")
workers: Any = bootstrap("profile.workers")
recorder: Any = bootstrap("profile.recorder")
sampler: Any = bootstrap("profile.sampler")
held_collector: Any = bootstrap("profile.held_collector")


@pytest.fixture
def thresholds() -> tuple[int, int, int]:
    """Those of the collector while no sampler holds it."""
    return gc.get_threshold()


@pytest.fixture
def started(thresholds: tuple[int, int, int]) -> Iterator[Any]:
    """A sampler of this thread."""
    usual = sys.getswitchinterval(), thresholds
    made = sampler.Sampler(lambda now: None)
    made.follow()
    made.start()
    yield made
    made.stop()
    assert (sys.getswitchinterval(), gc.get_threshold()) == usual


def compute_in_python(seconds: float) -> None:
    end, value = time.perf_counter() + seconds, 1
    while time.perf_counter() < end:
        for _ in range(2000):
            value = (value * 1103515245 + 12345) % 2147483648


def wait_without_the_lock(seconds: float) -> None:
    time.sleep(seconds)


def seconds_in(made: Any, function: str) -> float:
    places: list[dict[str, Any]] = made.places.all()
    stacks = sorted(made.stacks, key=lambda stack: made.stacks[stack])
    found = 0.0
    for number in range(1, len(made.times)):
        stack = stacks[made.stack_of[number]]
        if any(places[place]["function"] == function for place in stack):
            found += made.times[number] - made.times[number - 1]
    return found


def test_python_code_is_seen_as_often_as_calls_that_give_up_the_lock(started: Any) -> None:
    """Also by the samples of a step that takes about as long as the time between two of them.

    On a busy machine the system stops either thread now and then. One undisturbed second is enough:
    a sampler that prefers one of the two prefers it in each.
    """
    errors: list[float] = []
    while len(errors) < 20 and not (errors and errors[-1] < 0.3):
        true = {"compute_in_python": 0.0, "wait_without_the_lock": 0.0}
        already = {name: seconds_in(started, name) for name in true}
        for _ in range(100):
            for function, wanted in ((compute_in_python, 0.008), (wait_without_the_lock, 0.002)):
                before = time.perf_counter()
                function(wanted)
                true[function.__name__] += time.perf_counter() - before
        seen = {name: seconds_in(started, name) - already[name] for name in true}
        share = seen["compute_in_python"] / (sum(seen.values()) or 1)
        errors.append(abs(share - true["compute_in_python"] / sum(true.values())))
    assert errors[-1] < 0.3, errors


def test_a_switch_interval_of_the_program_stays() -> None:
    usual = sys.getswitchinterval()
    made = sampler.Sampler(lambda now: None)
    made.start()
    try:
        sys.setswitchinterval(0.002)
        wait_until(lambda: made.taken > 0)
        assert sys.getswitchinterval() == pytest.approx(0.002)
        made.stop()
        assert sys.getswitchinterval() == pytest.approx(0.002)
    finally:
        made.stop()
        sys.setswitchinterval(usual)


def test_other_threads_that_compute_keep_a_longer_interval(started: Any) -> None:
    """They would switch at every instruction."""
    stopping = threading.Event()

    def compute() -> None:
        while not stopping.is_set():
            compute_in_python(0.01)

    other = threading.Thread(target=compute)
    other.start()
    try:
        compute_in_python(0.3)
        short = 0
        for _ in range(50):
            time.sleep(0.005)
            short += sys.getswitchinterval() < 2e-4
    finally:
        stopping.set()
        other.join()
    assert short < 25


def test_the_thread_that_it_samples_may_end() -> None:
    """The C library would look for its clock in memory that is no longer there."""
    made = sampler.Sampler(lambda now: None)

    def train() -> None:
        made.follow()
        compute_in_python(0.05)

    # The memory of a few threads is kept for the next ones.
    threads = [threading.Thread(target=train) for _ in range(20)]
    made.start()
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        while max(made.thread_seconds, default=0.0) == 0.0:
            compute_in_python(0.01)
        taken = made.taken
        while made.taken < taken + 10:
            time.sleep(0.01)
    finally:
        made.stop()
    assert made.thread_seconds[-1] == 0.0


class Finalized:
    """Garbage that only the collector finds, with a finalizer that lets other threads run."""

    def __init__(self) -> None:
        self.cycle = self

    def __del__(self) -> None:
        for _ in range(200):
            pass


def make_garbage(depth: int) -> int:
    Finalized()
    return make_garbage(depth - 1) + 1 if depth else 0


def test_the_collector_never_runs_in_the_thread_of_the_sampler() -> None:
    """There it would call the program's finalizers, and Python 3.11 would crash or hang."""
    ran_in = set()

    def note(phase: str, info: dict[str, int]) -> None:
        ran_in.add(threading.get_ident())

    usual = gc.get_threshold()
    # Before the sampler starts: thresholds that are set while it is awake count at once.
    gc.set_threshold(20, *usual[1:])
    made = sampler.Sampler(lambda now: None)
    made.follow()
    kept: list[tuple[int, int, int]] = []
    gc.callbacks.append(note)
    made.start()
    try:
        while made.taken < 200:
            make_garbage(50)
            # Without spare tuples of the size of the thresholds, reading them makes a new object.
            kept.extend((0, 0, each) for each in range(20))
    finally:
        gc.callbacks.remove(note)
        made.stop()
        gc.set_threshold(*usual)
    assert threading.get_ident() in ran_in
    assert made.ident not in ran_in


def test_thresholds_of_the_program_stay() -> None:
    usual = gc.get_threshold()
    made = sampler.Sampler(lambda now: None)
    made.start()
    try:
        while made.taken < 5:
            time.sleep(0.01)
        gc.set_threshold(500, 20, *usual[2:])
        taken = made.taken
        while made.taken < taken + 5:
            time.sleep(0.01)
        # As a program does that has read ours and sets them again later.
        gc.set_threshold(held_collector.OUT_OF_REACH, 20, *usual[2:])
        while made.taken < taken + 10:
            time.sleep(0.01)
        # As one does that changes the first and leaves the others as it has read them.
        gc.set_threshold(400, *[held_collector.OUT_OF_REACH] * 2)
        while made.taken < taken + 15:
            time.sleep(0.01)
        made.stop()
        assert gc.get_threshold() == (400, 20, *usual[2:])
    finally:
        made.stop()
        gc.set_threshold(*usual)


def test_a_forked_child_has_what_the_program_has_set(tmp_path: Any) -> None:
    usual = sys.getswitchinterval(), gc.get_threshold()
    recorder.begin(str(tmp_path))
    try:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                recorder.after_fork()
                same = (sys.getswitchinterval(), gc.get_threshold()) == usual
                os._exit(0 if same else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        recorder.result()
    assert (sys.getswitchinterval(), gc.get_threshold()) == usual


def test_it_samples_less_often_when_there_are_enough(started: Any) -> None:
    first = started._period()
    started.taken = sampler.ENOUGH_SAMPLES
    assert started._period() >= max(first, sampler.SETTLED_PERIOD)
    started.settle_later()
    assert started._period() < sampler.SETTLED_PERIOD or first >= sampler.SETTLED_PERIOD


def test_the_program_does_not_see_the_thread(thresholds: tuple[int, int, int]) -> None:
    """Programs wait for all other threads, count them, and trace each of them."""
    known = threading.enumerate()
    traced: list[str] = []

    def trace(frame: Any, event: str, argument: Any) -> None:
        traced.append(frame.f_code.co_filename)

    threading.setprofile(trace)
    try:
        made = sampler.Sampler(lambda now: None)
        made.start()
    finally:
        threading.setprofile(None)
    wait_until(lambda: made.taken > 5)
    assert threading.enumerate() == known
    made.stop()
    assert threading.enumerate() == known
    assert traced == []
    taken = made.taken
    time.sleep(0.1)
    assert made.taken == taken


def test_a_signal_that_the_program_waits_for_is_left_to_it(started: Any) -> None:
    wait_until(lambda: started.taken > 0)
    with open(f"/proc/self/task/{native_of(started)}/status") as file:
        blocked = next(line for line in file if line.startswith("SigBlk")).split()[1]
    assert int(blocked, 16) & 1 << (signal.SIGTERM - 1)


def native_of(made: Any) -> int:
    """The only thread of this process that threading does not know and that runs Python."""
    frames = sys._current_frames()
    assert made.ident in frames
    known = {thread.native_id for thread in threading.enumerate()}
    (found,) = (
        number
        for number in map(int, os.listdir("/proc/self/task"))
        if number not in known and _blocks_something(number)
    )
    return found


def _blocks_something(number: int) -> bool:
    with open(f"/proc/self/task/{number}/status") as file:
        return any(line.startswith("SigBlk") and int(line.split()[1], 16) for line in file)


def test_stacks_without_samples_are_forgotten(started: Any) -> None:
    """A program whose stack is never the same twice would fill the memory."""
    started.stop()
    seconds = started.thread_seconds, started.process_seconds
    for column in (started.times, started.stack_of, *seconds):
        column.clear()
    started.stacks.clear()
    for number in range(sampler.MOST_SAMPLES - 1):
        started.stacks[(number, 0)] = number
        started.times.append(float(number))
        started.stack_of.append(number)
        started.thread_seconds.append(0.0)
        started.process_seconds.append(0.0)
    started._sample(float(sampler.MOST_SAMPLES), sys._getframe())
    assert len(started.stacks) == len(started.times) == sampler.MOST_SAMPLES // 2
    shown = {number: stack for stack, number in started.stacks.items()}
    kept = [shown[number] for number in started.stack_of[:-1]]
    assert kept == [(int(each), 0) for each in started.times[:-1]]


def test_places_that_are_too_many_are_of_unknown_kind() -> None:
    """They were taken for the first place that was seen."""
    places = code_places.Places()
    first = places.of(sys._getframe(), True)
    places._found += [places.all()[first]] * code_places.MOST_PLACES
    assert places.all()[places.of(sys._getframe(), True)] == code_places.NOT_KEPT


def test_a_replacement_of_a_function_counts_as_a_library() -> None:
    """Under --tf1, the time in np.array() was of unknown kind, as if the sampler had taken it."""
    kinds = {}
    for name in ("tf1/numpy_names.py", "profile/recorder.py"):
        frames: dict[str, Any] = {}
        code = compile("frame = sys._getframe()", os.path.join(code_places.OWN, name), "exec")
        exec(code, {"sys": sys}, frames)
        places = code_places.Places()
        kinds[name] = places.all()[places.of(frames["frame"], True)]["origin"]
    assert kinds == {"tf1/numpy_names.py": "library", "profile/recorder.py": "whygpu"}


def test_steps_of_many_threads_are_marked_while_the_sampling_ends(tmp_path: Any) -> None:
    """An error here would be one of the program: its optimizer's step would raise it."""
    errors: list[BaseException] = []
    stopping = threading.Event()

    def train(name: str) -> None:
        number = 0
        while not stopping.is_set():
            number += 1
            try:
                recorder.mark(f"torch {name} {number % 40}")
            except BaseException as error:
                errors.append(error)
                return

    usual = sys.getswitchinterval()
    threads = [threading.Thread(target=train, args=(each,)) for each in "abcd"]
    for each in threads:
        each.start()
    try:
        for _ in range(20):
            recorder.begin(str(tmp_path))
            sys.setswitchinterval(1e-6)
            time.sleep(0.02)
            recorder.result()
    finally:
        stopping.set()
        for each in threads:
            each.join()
        sys.setswitchinterval(usual)
    assert errors == []


def test_packages_that_are_installed_elsewhere_are_no_code_of_the_program(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function of theirs was said to load data, by its name. Installed with --target."""
    for name in (
        "installed/plots-1.0.dist-info",
        "mine/tool.egg-info",
        "beside/made-1.0.dist-info",
    ):
        (tmp_path / name).mkdir(parents=True)
    for folder in ("installed", "mine", "beside"):
        monkeypatch.syspath_prepend(tmp_path / folder)
    monkeypatch.setattr(sys, "path", [*sys.path, os.fsencode(tmp_path / "installed"), 3])
    main = types.SimpleNamespace(__file__=str(tmp_path / "beside" / "train.py"))
    monkeypatch.setitem(sys.modules, "__main__", main)
    places = code_places.Places()
    found = {
        folder: places._origin(str(tmp_path / folder / "a.py")) for folder in os.listdir(tmp_path)
    }
    assert found == {
        "installed": ("library", "a.py"),
        "mine": ("program", str(tmp_path / "mine" / "a.py")),
        "beside": ("program", str(tmp_path / "beside" / "a.py")),
    }


def test_code_of_a_notebook_is_in_its_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was said to be in a file with a number for a name, or was no code of the program."""
    cells = {"/tmp/ipykernel_7/123.py": ("Cell", "In[4]")}
    shell = types.SimpleNamespace(compile=types.SimpleNamespace(format_code_name=cells.get))
    monkeypatch.setattr(builtins, "get_ipython", lambda: shell, raising=False)
    places = code_places.Places()
    assert places._origin("/tmp/ipykernel_7/123.py") == ("program", "Cell In[4]")
    assert places._origin("<ipython-input-3-0f2b>") == ("program", "Cell In[3]")
    assert places._origin("/home/me/train.py") == ("program", "/home/me/train.py")


def test_a_sample_does_not_keep_what_the_program_has_let_go(started: Any) -> None:
    """The last list of frames contained itself, so all variables of the program's functions lived
    until the collector ran: tensors took memory for longer, and a data pipeline of TensorFlow ended
    so late that the process was aborted."""

    class Tensor:
        """Counts as much as one."""

    def use() -> weakref.ref[Tensor]:
        tensor = Tensor()
        taken = started.taken
        wait_until(lambda: bool(started.taken > taken + 5))
        return weakref.ref(tensor)

    was_on = gc.isenabled()
    gc.disable()
    try:
        kept = use()
        taken = started.taken
        wait_until(lambda: bool(started.taken > taken + 5))
        assert kept() is None
    finally:
        if was_on:
            gc.enable()


def test_a_program_may_replace_the_function_that_names_its_threads(
    started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As packages for green threads do: then the number is not that of a thread."""
    monkeypatch.setattr("_thread.get_ident", lambda: -1)
    before = len(started.times)
    compute_in_python(0.3)
    assert len(started.times) > before + 3


def test_a_thread_with_the_number_of_an_older_one_takes_no_wait_away() -> None:
    numbers: list[int] = []
    started, done = threading.Event(), threading.Event()

    def work() -> None:
        numbers.append(threading.get_native_id())
        started.set()
        done.wait()

    # As a thread of a framework, it is none of Python's.
    _thread.start_new_thread(work, ())
    assert started.wait(10)
    look = workers.Workers()
    look._threads = {numbers[0]: 1e6}
    waited = look._framework_waited()
    done.set()
    assert waited == 0.0
