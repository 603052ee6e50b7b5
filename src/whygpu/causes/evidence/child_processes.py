"""Child processes that a program starts, and the functions they run."""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.causes.evidence.device_code import path_of
from whygpu.model.events import Call
from whygpu.model.program import Program
from whygpu.model.values import Defined, Result

_PROCESSES = ("multiprocessing.Process", "torch.multiprocessing.Process")
_POOLS = (
    "multiprocessing.Pool",
    "multiprocessing.pool.Pool",
    "torch.multiprocessing.Pool",
    "concurrent.futures.ProcessPoolExecutor",
)
_HANDS_OVER = frozenset(
    {
        "map",
        "imap",
        "imap_unordered",
        "map_async",
        "starmap",
        "starmap_async",
        "apply",
        "apply_async",
        "submit",
    }
)


def children(program: Program) -> Iterator[tuple[Call, Defined]]:
    """The calls that run a function of this file in another process, with that function."""
    for call in program.calls():
        if call.path in _PROCESSES:
            target = call.keywords.get("target")
        elif is_pool_work(call):
            target = call.argument(0, "func")
        else:
            continue
        if isinstance(target, Defined):
            yield call, target


def is_pool_work(call: Call) -> bool:
    return (
        call.method in _HANDS_OVER
        and isinstance(call.receiver, Result)
        and path_of(call.receiver) in _POOLS
    )


def run_several(call: Call, processes: list[Call]) -> bool:
    """More than one process runs at a time."""
    if is_pool_work(call):
        return True
    return any(frame.kind == "loop" for frame in call.context) or len(processes) > 1
