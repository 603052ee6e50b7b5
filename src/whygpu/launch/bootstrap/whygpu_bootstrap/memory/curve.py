"""How much GPU memory the tensors of the program take, over time.

A thread takes samples. It runs only after a framework has started a GPU: the driver and the
framework then have threads as well, so Python warns about forks beside threads as it would without
us. On the CPU, nothing runs in the program; its memory is watched from outside.
"""

import _thread
import signal
import time

from whygpu_bootstrap import process_record
from whygpu_bootstrap.memory import live_usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

FIRST_INTERVAL = 0.02
MOST_POINTS = 200
"""At this number, neighbouring points are joined and the interval is doubled. A sample takes about
0.05 ms."""
LONGEST_WAIT = 1.0
"""Seconds to wait at the end for a sample that is in progress."""

_state: "dict[Any, Any]" = {}


def reset() -> None:
    """Watch nothing: a forked child has neither the thread nor the GPU of its parent."""
    _state.clear()
    _state.update(gauges={}, curves={}, interval=FIRST_INTERVAL, began=None, stop=None, done=None)


reset()


def watch(framework: str, gauge: "Callable[[], dict[str, int]]") -> None:
    """Sample gauge() from now on, in a thread. It returns {device: bytes in use}."""
    _state["gauges"][framework] = gauge
    if _state["stop"] is not None:
        return
    _state["began"] = time.time()
    stop, done = _thread.allocate_lock(), _thread.allocate_lock()
    stop.acquire()
    done.acquire()
    with process_record.noted("watching the GPU's memory"):
        _thread.start_new_thread(_look_until, (stop, done))
        _state.update(stop=stop, done=done)


def stop() -> None:
    """End the thread, before the framework shuts its devices down."""
    lock = _state["stop"]
    if lock is not None and lock.locked():
        lock.release()
        _state["done"].acquire(True, LONGEST_WAIT)


def curves() -> "list[dict[str, Any]]":
    """What was seen, as the type Curve in model/memory_use.py."""
    return [
        {
            "of": framework,
            "device": device,
            "began": _state["began"],
            "points": [dict(zip(("seconds", "low", "high"), point)) for point in points],
        }
        for (framework, device), points in sorted(_state["curves"].items())
    ]


def _look_until(stop: "_thread.LockType", done: "_thread.LockType") -> None:
    if hasattr(signal, "pthread_sigmask"):
        # Signals must reach the main thread, to interrupt its system calls.
        valid = signal.valid_signals() if hasattr(signal, "valid_signals") else range(1, 32)
        signal.pthread_sigmask(signal.SIG_BLOCK, valid)
    while not stop.acquire(True, _state["interval"]):
        counts = []
        for framework, gauge in list(_state["gauges"].items()):
            with process_record.noted("watching the memory of %s" % framework):
                counts += [[framework, device, count] for device, count in gauge().items()]
                continue
            # It failed and was noted; it would fail again.
            del _state["gauges"][framework]
        with process_record.noted("the curve of the GPU's memory"):
            _add(counts)
            live_usage.tell(counts)
    done.release()


def _add(counts: "list[Any]") -> None:
    now = round(time.time() - _state["began"], 3)
    for framework, device, count in counts:
        points = _state["curves"].setdefault((framework, device), [])
        points.append([now, count, count])
    if any(len(points) >= MOST_POINTS for points in _state["curves"].values()):
        for points in _state["curves"].values():
            points[:] = joined(points)
        _state["interval"] *= 2


def joined(points: "list[list[float]]") -> "list[list[float]]":
    """Half as many points, with the minimum and the maximum of each pair."""
    pairs = [points[index : index + 2] for index in range(0, len(points), 2)]
    return [
        [pair[0][0], min(point[1] for point in pair), max(point[2] for point in pair)]
        for pair in pairs
    ]
