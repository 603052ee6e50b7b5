"""PyTorch's profiler: kernels, copies and calls of CUDA. Its operations on the CPU are left out."""

import os
import sys
import warnings

from whygpu_bootstrap.profile import recorder
from whygpu_bootstrap.profile.device_window import giving_way

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MARK = "cudaDeviceSynchronize"
MOST_EVENTS = 200000
"""About 100 MB as a file. The first of more are written, and nothing else."""


class Profiler:
    """Each of its methods runs in the thread that trains."""

    name = "PyTorch's profiler"
    kind = "kineto"
    saves_quickly = False

    def __init__(self, torch: "Any") -> None:
        self._torch = torch
        self._running: "Any" = None
        self._starting = False
        kind: "Any" = getattr(sys.modules.get("torch.autograd.profiler"), "profile", None)
        if kind is not None and recorder.is_new("torch profiler"):
            kind.__init__ = giving_way(kind.__init__, self._others_window, self.name)

    def _others_window(self) -> "Any":
        return None if self._starting else recorder.window()

    def ready(self) -> bool:
        """CUDA is in use, and nobody is profiling."""
        return bool(self._torch.cuda.is_initialized())

    def safe(self) -> bool:
        """Waiting for the GPU would break a CUDA graph that is being captured."""
        return not self._torch.cuda.is_current_stream_capturing()

    def wait(self) -> None:
        self._torch.cuda.synchronize()

    def start(self) -> None:
        torch = self._torch
        if torch.autograd._profiler_enabled():
            raise RuntimeError("the program uses PyTorch's profiler itself")
        self._starting = True
        try:
            activities = [torch.profiler.ProfilerActivity.CUDA]
            with warnings.catch_warnings():
                # Some releases warn about reference cycles; there is one here.
                warnings.simplefilter("ignore")
                self._running = torch.profiler.profile(activities=activities)
                self._running.start()
        finally:
            self._starting = False

    def mark(self) -> None:
        """A call of CUDA that computes nothing."""
        self._torch.cuda.synchronize()

    def stop(self) -> None:
        self._running.stop()

    def files(self) -> "list[str]":
        path = recorder.file_beside_record("kineto.json")
        events = self._running.profiler.kineto_results.events()
        if len(events) > MOST_EVENTS:
            _write_first(path, events)
        else:
            del events
            self._running.export_chrome_trace(path)
        return [path] if os.path.exists(path) else []


def _write_first(path: str, events: "list[Any]") -> None:
    """Write the first of too many events, in the same format, with what is needed of them.

    A CUDA graph runs a million small kernels in a second.
    """
    import json

    timed = [(event.start_ns(), event) for event in events]
    timed.sort(key=lambda pair: pair[0])
    first = timed[0][0]
    kept = timed[:MOST_EVENTS] + [pair for pair in timed[MOST_EVENTS:] if pair[1].name() == MARK]
    with open(path, "w") as file:
        cut = (timed[MOST_EVENTS][0] - first) / 1e9
        file.write('{"cutAfterSeconds": %r, "traceEvents": [' % cut)
        for number, (begin, event) in enumerate(kept):
            file.write(",\n" if number else "\n")
            file.write(json.dumps(_as_json(event, begin - first)))
        file.write("]}")


def _as_json(event: "Any", begin: int) -> "dict[str, Any]":
    name = event.name()
    on_gpu = "CPU" not in str(event.device_type())
    if name.startswith("Mem") and on_gpu:
        category = "gpu_memcpy"
    else:
        category = "kernel" if on_gpu else "cuda_runtime"
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": begin / 1e3,
        "dur": event.duration_ns() / 1e3,
        "args": {"device": event.device_index()} if on_gpu else {},
    }
