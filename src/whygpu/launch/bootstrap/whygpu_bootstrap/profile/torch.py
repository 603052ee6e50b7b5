"""Steps of PyTorch: each step of an optimizer; and what torch.compile compiles.

A program that changes its parameters itself has no optimizer. There, calls of backward() count.
"""

import functools
import sys

from whygpu_bootstrap import process_record
from whygpu_bootstrap.profile import recorder, torch_profiler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

LONGEST_REASON = 300
WITHOUT_OPTIMIZER = "torch backward"

_optimizers: "list[str]" = []
"""The kind of the first optimizer that made a step."""


def start(torch: "Any") -> None:
    recorder.prepare("torch", start, torch)
    recorder.watch(Compilations())
    with process_record.noted("telling modules in training and evaluation mode apart"):
        recorder.reads_mode_of(torch.nn.Module._call_impl.__code__)
    with process_record.noted("preparing PyTorch's profiler"):
        recorder.add_profiler("torch", torch_profiler.Profiler(torch))
    optimizer = sys.modules.get("torch.optim.optimizer")
    register = getattr(optimizer, "register_optimizer_step_post_hook", None)
    if not recorder.is_new("torch"):
        return
    with process_record.noted("marking the calls of backward()"):
        torch.autograd.backward = _marking(torch.autograd.backward)
    if register is None:
        process_record.note("PyTorch before 2.0 does not report steps of optimizers")
    else:
        register(_stepped)


def _marking(backward: "Callable[..., Any]") -> "Callable[..., Any]":
    @functools.wraps(backward)
    def marked(*arguments: "Any", **named: "Any") -> "Any":
        result = backward(*arguments, **named)
        if not _optimizers:
            recorder.mark(WITHOUT_OPTIMIZER)
        return result

    return marked


def _stepped(optimizer: "Any", arguments: "Any", options: "Any") -> None:
    if not _optimizers:
        _optimizers.append(type(optimizer).__name__)
    recorder.mark("torch %s %d" % (type(optimizer).__name__, id(optimizer)))


class Compilations:
    """What torch.compile has compiled, from the list that it keeps of the last ones."""

    def __init__(self) -> None:
        self._seen: "set[Any]" = set()

    def look(self, now: float) -> None:
        utils = sys.modules.get("torch._dynamo.utils")
        listed = getattr(utils, "get_compilation_metrics", None)
        for each in listed() if listed is not None else ():
            key = (each.compile_id, getattr(each, "start_time_us", None), each.co_firstlineno)
            if each.co_name is not None and key not in self._seen:
                self._seen.add(key)
                _note_compilation(each)


def _note_compilation(metrics: "Any") -> None:
    seconds = getattr(metrics, "entire_frame_compile_time_s", None) or 0.0
    began = getattr(metrics, "start_time", None)
    why = {
        "file": metrics.co_filename or "",
        "line": metrics.co_firstlineno or 0,
        "reason": (getattr(metrics, "recompile_reason", None) or "")[:LONGEST_REASON],
    }
    if began is not None:
        recorder.compiled(metrics.co_name, seconds, why, ended=began + seconds)
