"""How memory ended a run, in numbers: put together from what the program, its frameworks, the
kernel and the driver have left behind. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from whygpu.causes.evidence.gpu_memory import described, holders
from whygpu.memory.growth import Course, judge
from whygpu.model.driver import Gpu
from whygpu.model.lazy_regex import late
from whygpu.model.memory_use import (
    Allocator,
    Curve,
    HostMemory,
    LimitKind,
    MemoryEnd,
    Point,
    ProcessMemory,
)
from whygpu.model.observed import Known, Observed
from whygpu.model.policy import DevicePolicy, ProcessRecord
from whygpu.model.shortage import AllocatorState, Shortage
from whygpu.readers.allocator_state import allocator_states
from whygpu.readers.memory_errors import shortage_in_text

_FRAMEWORKS = {"xla": ("jax", "tensorflow"), "tensorflow": ("tensorflow",), "torch": ("torch",)}
"""The frameworks whose allocator may have refused, by the software that reported the refusal."""
_GPU_NUMBER = late(r"\bGPU[ _:](?P<number>\d+)|\bon device (?P<of_xla>\d+)")
_NO_TORCH_POOL = frozenset({"jax", "tensorflow"})
"""Frameworks that reserve their whole share at once: free memory in it does not show gaps."""
_ENDED_BY_KERNEL = Shortage("kernel", "host", None, None, None, None, "Killed")
_MOST_HOLDERS = 3
_PLENTY = 0.25
"""If more than this part of main memory was available, main memory did not run out."""
_TELLING = 0.9
"""An upper bound for the batch is reported only if it is at most this part of the batch."""
_ALL = 0.98
"""A limit above this part of a GPU's memory is the GPU itself: the total that CUDA reports is a
little less than the driver's."""
_CONTEXT = 1 << 29
"""Approximate memory of a process on a GPU besides its tensors: context, kernels, workspaces."""


_GPU_LIMITS: dict[LimitKind, str] = {
    "gpu": "the GPU",
    "policy": "--memory",
    "framework-share": "its framework's share of the GPU",
}


class Run(NamedTuple):
    """What is known about a run after it failed."""

    error_text: str
    """The beginning and the end of its standard error."""
    records: tuple[ProcessRecord, ...]
    host: HostMemory
    policy: DevicePolicy
    progress: int = 0
    """How many lines of its output report finished work."""
    gpus: tuple[Gpu, ...] = ()
    """As the driver describes them after the run."""
    shared_total: int | None = None
    """The size of /dev/shm."""
    limit_overruled: bool = False
    """The frameworks report that the limit of the policy was not in force."""


def memory_end(run: Run) -> MemoryEnd | None:
    """How lack of memory ended the run; None if nothing shows that it did."""
    shortage, record = _found(run)
    if shortage is None:
        return None
    if shortage.place == "gpu" and shortage.of == "xla" and not _on_gpu(run.records):
        # XLA uses the same words for main memory.
        shortage = shortage._replace(place="host")
    if shortage.place == "gpu":
        return _on_the_gpu(run, shortage, record)
    if shortage.place == "shared-memory":
        end = _judged(Course("shared-memory", limit=run.shared_total), shortage, record)
        return end._replace(
            limit_is="/dev/shm", limit_kind="shared-memory", reason="unknown", because=""
        )
    return _on_the_computer(run, shortage, record)


def _found(run: Run) -> tuple[Shortage | None, ProcessRecord | None]:
    """The refused request, and the record of the process that made it."""
    for record in reversed(run.records):
        shortage = shortage_in_text(record.memory.error) if record.memory.error else None
        if shortage is not None:
            return shortage, record
    alone = run.records[0] if len(run.records) == 1 else None
    shortage = shortage_in_text(run.error_text)
    if shortage is None and run.host.kills:
        shortage = _ENDED_BY_KERNEL
    return shortage, alone


def _on_gpu(records: Sequence[ProcessRecord]) -> bool:
    return any(
        device.startswith("gpu")
        for record in records
        for use in record.frameworks
        for device in use.devices
    )


def _on_the_gpu(run: Run, shortage: Shortage, record: ProcessRecord | None) -> MemoryEnd:
    memory = record.memory if record is not None else ProcessMemory()
    allocator = _allocator(memory, shortage)
    device = allocator.device if allocator is not None else _named_device(shortage.text) or ""
    gpu = run.gpus[0] if len(run.gpus) == 1 else None
    curve = _curve_on(memory, device, allocator)
    state = _state_of(run.error_text, shortage)
    limit, limit_kind = _gpu_limit(run, shortage, allocator, gpu, state)
    unused = _unused(allocator)
    others = _others(allocator, gpu)
    total = _first(allocator and allocator.total, gpu and _value(gpu.memory_total_bytes))
    in_the_way = _of_its_own_limit(others, limit, total)
    held = _first(shortage.held, state and state.in_use)
    if held is None and allocator is not None:
        held = _held_at_refusal(allocator, shortage.asked, limit, in_the_way)
    free = _first(shortage.free, allocator and allocator.free)
    if free is None and limit is not None and held is not None:
        free = max(0, limit - (in_the_way or 0) - held)
    course = Course(
        "gpu",
        asked=shortage.asked,
        free=free,
        limit=limit,
        held=held,
        unused=unused,
        largest_free=allocator.largest_free if allocator else None,
        others=in_the_way,
        points=curve.points if curve is not None else (),
        turnover=_turnover(allocator),
    )
    end = _judged(_with_story(course, run, memory), shortage, record)
    return with_bound(end, memory.batch)._replace(
        device=device,
        limit_is=_GPU_LIMITS[limit_kind],
        limit_kind=limit_kind,
        others=others,
        holders=tuple(described(each) for each in holders(gpu)[:_MOST_HOLDERS]) if gpu else (),
        curve=curve,
    )


def _on_the_computer(run: Run, shortage: Shortage, record: ProcessRecord | None) -> MemoryEnd:
    memory = record.memory if record is not None else ProcessMemory()
    curve = run.host.curve
    if record is not None:
        curve = part_of(curve, record.imported, record.ended)
    limit, limit_is, limit_kind = run.host.limit, run.host.limit_is, run.host.limit_kind
    free = run.host.least_available
    held = curve.points[-1].high if curve.points else None
    own = memory.limit or run.host.process_limit
    if own is not None and (limit is None or own.limit < limit):
        limit, limit_is = own.limit, f"{own.name} of the process"
        limit_kind = "address-space" if own.name == "RLIMIT_AS" else "data"
        # When the process reports its memory, that of the failed step has been freed.
        held = max(own.in_use, min(own.limit, run.host.peak or 0))
        free = max(0, own.limit - held)
    elif limit is not None and limit_kind == "control-group" and held is not None:
        free = max(0, limit - held)
    if shortage is not _ENDED_BY_KERNEL and free is not None and limit is not None:
        plenty = limit if own is not None else int(_PLENTY * limit)
        if free > (plenty if shortage.asked is None else shortage.asked):
            # With so much free, this limit is not the reason: the allocator has its own limit.
            limit, limit_is, limit_kind = None, "", "unknown"
    course = Course(
        shortage.place,
        asked=shortage.asked,
        free=free,
        limit=limit,
        held=held,
        points=curve.points,
    )
    end = _judged(_with_story(course, run, memory), shortage, record)
    end = with_bound(end, memory.batch)
    return end._replace(device="host", limit_is=limit_is, limit_kind=limit_kind, curve=curve)


def _with_story(course: Course, run: Run, memory: ProcessMemory) -> Course:
    rounds = [each.begun for each in memory.rounds]
    at_once = bool(memory.error) and not memory.in_loop
    return course._replace(
        steps=memory.steps,
        rounds=max(rounds) if rounds else 0 if at_once else None,
        progress=run.progress,
        kept=memory.kept,
    )


def _judged(course: Course, shortage: Shortage, record: ProcessRecord | None) -> MemoryEnd:
    judgement = judge(course)
    names = [use.name for use in record.frameworks] if record is not None else []
    return MemoryEnd(
        place=course.place,
        device="",
        of=names[0] if len(names) == 1 else shortage.of,
        asked=course.asked,
        free=course.free,
        limit=course.limit,
        limit_is="",
        held=course.held,
        unused=course.unused,
        others=course.others,
        holders=(),
        reason=judgement.reason,
        confidence=judgement.confidence,
        because=judgement.because,
        steps=course.steps,
        kept=course.kept,
    )


def with_bound(end: MemoryEnd, batch: int | None) -> MemoryEnd:
    """Add an upper bound for the batch that fits: the failed step needed at least what it held and
    requested."""
    end = end._replace(batch=batch)
    if end.reason != "too-big" or None in (batch, end.limit, end.held, end.asked):
        return end
    assert batch is not None
    assert end.limit is not None
    needed = (end.held or 0) + (end.asked or 0)
    room = end.limit - (end.others or 0)
    below = -(-batch * room // needed) if room > 0 else None
    telling = below is not None and below <= _TELLING * batch
    return end._replace(fits_below=below if telling else None)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _named_device(text: str) -> str | None:
    match = _GPU_NUMBER.search(text)
    return f"gpu:{match['number'] or match['of_xla']}" if match else None


def _allocator(memory: ProcessMemory, shortage: Shortage) -> Allocator | None:
    """The fullest allocator of the framework and the GPU that the message names: it refused."""
    framework = _FRAMEWORKS.get(shortage.of)
    device = _named_device(shortage.text)
    fitting = [
        each
        for each in memory.allocators
        if (framework is None or each.of in framework) and device in (None, each.device)
    ]
    return max(fitting, key=lambda each: each.live, default=None)


def _curve_on(memory: ProcessMemory, device: str, allocator: Allocator | None) -> Curve | None:
    fitting = [
        curve
        for curve in memory.curves
        if curve.device == (device or curve.device)
        and (allocator is None or curve.of == allocator.of)
    ]
    return max(fitting, key=lambda curve: curve.points[-1].high, default=None)


def _state_of(text: str, shortage: Shortage) -> AllocatorState | None:
    """The last report of TensorFlow's allocator about the GPU, if TensorFlow made the request.

    XLA in TensorFlow takes its memory from the same allocator.
    """
    if shortage.of not in ("tensorflow", "xla"):
        return None
    device = _named_device(shortage.text)
    states = [each for each in allocator_states(text) if device in (None, f"gpu:{each.gpu}")]
    return states[-1] if states else None


def _held_at_refusal(
    allocator: Allocator, asked: int | None, limit: int | None, others: int | None
) -> int | None:
    """What was in use when memory ran out; None if the allocator was asked too late to know.

    An exception in TensorFlow frees the tensors of the failed step. If the request would fit into
    what is free now, the memory in use now is less than it was at the refusal.
    """
    if allocator.of != "tensorflow" or asked is None or limit is None:
        return allocator.live
    fits = allocator.live + asked <= limit - (others or 0)
    return None if fits else allocator.live


def _gpu_limit(
    run: Run,
    shortage: Shortage,
    allocator: Allocator | None,
    gpu: Gpu | None,
    state: AllocatorState | None,
) -> tuple[int | None, LimitKind]:
    """The most that this process could have, and what sets it."""
    whole = _first(
        allocator and allocator.total,
        gpu and _value(gpu.memory_total_bytes),
        shortage.total,
    )
    asked = None if run.limit_overruled else _policy_limit(run.policy, whole)
    reported = (allocator and allocator.limit, shortage.total, state and state.limit, asked)
    cap = min((each for each in reported if each is not None), default=None)
    if cap is None or (whole is not None and cap > _ALL * whole):
        return whole, "gpu"
    if asked is not None and abs(cap - asked) <= (1 - _ALL) * asked:
        return cap, "policy"
    return cap, "framework-share"


def _policy_limit(policy: DevicePolicy, whole: int | None) -> int | None:
    """What --memory allows on a GPU of this size."""
    if policy.memory is None or policy.memory.kind == "growth":
        return None
    if policy.memory.kind == "bytes":
        return int(policy.memory.amount)
    return int(policy.memory.amount * whole) if whole is not None else None


def _unused(allocator: Allocator | None) -> int | None:
    if allocator is None or allocator.reserved is None:
        return None
    if allocator.of in _NO_TORCH_POOL and allocator.largest_free is None:
        return None
    return max(0, allocator.reserved - allocator.live)


def _of_its_own_limit(others: int | None, limit: int | None, total: int | None) -> int | None:
    """How much of this process's limit other processes hold.

    It is 0 if the GPU has enough memory for the others and for the whole limit.
    """
    if others is None or limit is None or total is None:
        return others
    return max(0, limit - (total - others))


def _others(allocator: Allocator | None, gpu: Gpu | None) -> int | None:
    """The memory of other processes when this one died; if unknown, what is in use afterwards."""
    if allocator is not None and allocator.total and allocator.free is not None:
        rest = allocator.total - allocator.free - (allocator.reserved or allocator.live)
        return rest - _CONTEXT if rest > 2 * _CONTEXT else 0
    return _value(gpu.memory_used_bytes) if gpu is not None else None


def _turnover(allocator: Allocator | None) -> float | None:
    if allocator is None or allocator.pieces is None or allocator.pieces_ever is None:
        return None
    return allocator.pieces_ever / max(1, allocator.pieces)


def _value(observed: Observed[int]) -> int | None:
    return observed.value if isinstance(observed, Known) else None


def part_of(curve: Curve, start: float | None, end: float | None) -> Curve:
    """The part of a curve between these times: after the imports, and before the process ends."""
    first = start - curve.began if start is not None else 0.0
    last = end - curve.began if end is not None else math.inf
    kept = [point for point in curve.points if first <= point.seconds <= last]
    shifted = tuple(Point(round(p.seconds - first, 3), p.low, p.high) for p in kept)
    return curve._replace(began=curve.began + first, points=shifted)
