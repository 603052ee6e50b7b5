"""Whether an exception, or what a program printed, says that memory has run out.

An exception is judged by its type and by its words, against the table that logs are read with. A
type alone is seldom enough: TensorFlow's ResourceExhaustedError is a full disk as well.
"""

from __future__ import annotations

import builtins
import errno
import linecache
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from whygpu.model.lazy_regex import late
from whygpu.model.log import Allocation, Line
from whygpu.model.shortage import MemoryPlace, Shortage
from whygpu.readers.allocations import allocations
from whygpu.tables.out_of_memory import LIBRARY_REFUSED, PERHAPS, bytes_of_shape

_LONGEST = 1 << 16
"""Of an exception's text: TensorFlow appends the graph, and the reason stands before it."""
_MOST_LINKS = 50
_OWN_WORDS = (RuntimeError, SystemError, MemoryError, OSError, ImportError, Exception)
"""Built-in types that libraries raise for want of memory. A KeyError that quotes such words is a
KeyError."""
_XLA_STATUS = "RESOURCE_EXHAUSTED: "
_GPU_TYPES = (("torch", "OutOfMemoryError"), ("cupy", "OutOfMemoryError"))
_OTHER_MEMORY_ERRORS = late(r"write\+execute memory|parser stack overflow")
"""A MemoryError that is none: cffi on a system that forbids writable code; old Python's parser."""
_PINNING = late(r"pin_memory|[Pp]in memory thread|cu(?:da)?(?:Mem)?(?:HostAlloc|AllocHost)")
_SAYS_GPU = late(r"GPU|CUDA|on device \d")
_NEARLY = 0.8


def shortage_in(error: BaseException) -> Shortage | None:
    """What an exception says of memory that ran out, itself or by what it was raised for."""
    for link in _chain(error):
        found = _of_one(link)
        if found is not None:
            return found
    return None


def shortage_in_text(text: str) -> Shortage | None:
    """The last refusal of memory that a program's output tells of, if it tells of one.

    A request that was tried again with less is none.
    """
    refused = [found for found in _refusals(text) if found.final]
    if not refused:
        return None
    last = refused[-1]
    # The line that ends a program often repeats, without the numbers, what was said just before.
    told = next((a for a in reversed(refused) if a.place == last.place and a.requested), last)
    return _shortage(told, text.splitlines())


def perhaps_in(text: str) -> str:
    """The line with words that want of memory is one reason of, and not the only one."""
    return next((line.strip() for line in text.splitlines() if PERHAPS.pattern.search(line)), "")


def _chain(error: BaseException) -> Iterator[Exception]:
    """The exception, and those that it stands for, outermost first."""
    waiting: list[BaseException] = [error]
    met: set[int] = set()
    while waiting and len(met) < _MOST_LINKS:
        link = waiting.pop(0)
        if id(link) in met or not isinstance(link, Exception):
            continue
        met.add(id(link))
        yield link
        waiting += getattr(link, "exceptions", ()) if _is_group(link) else ()
        if link.__cause__ is not None:
            waiting.append(link.__cause__)
        elif link.__context__ is not None and not link.__suppress_context__ and _reports(link):
            waiting.append(link.__context__)


def _is_group(error: BaseException) -> bool:
    group = getattr(builtins, "BaseExceptionGroup", None)
    return group is not None and isinstance(error, group)


def _reports(error: Exception) -> bool:
    """Raised in a handler to tell of the first error, and not a slip of the handler itself."""
    return type(error).__module__ != "builtins" or type(error) in (RuntimeError, Exception)


def _of_one(error: Exception) -> Shortage | None:
    kind = type(error)
    words = _text(error)
    if kind.__module__ == "builtins" and not _may_say_it(error):
        return None
    if isinstance(error, MemoryError) and _OTHER_MEMORY_ERRORS.search(words):
        return None
    text = f"{kind.__name__}: {words}"
    refused = [a for a in _refusals(text) if a.of != "kernel" or kind.__name__ == _GPU_TYPES[0][1]]
    told = next((a for a in refused if a.requested or a.shape), refused[0] if refused else None)
    if told is not None:
        found = _shortage(told, text.splitlines())
        return found._replace(place=_exact_place(found, error))
    line = perhaps_in(text)
    if line and _was_near_its_limit():
        return Shortage(PERHAPS.of, PERHAPS.place, None, None, None, None, line)
    place = _place_by_type(error)
    return Shortage("", place, None, None, None, None, text) if place is not None else None


def _was_near_its_limit() -> bool:
    """Whether this process has had nearly all that it may have (ulimit -v, ulimit -d)."""
    try:
        import resource

        with open("/proc/self/status", encoding="ascii", errors="replace") as stream:
            held = dict(line.split()[:2] for line in stream if line.startswith("Vm"))
    except (ImportError, OSError):
        return False
    limits = (("VmPeak:", resource.RLIMIT_AS), ("VmData:", resource.RLIMIT_DATA))
    return any(
        limit != resource.RLIM_INFINITY and int(held.get(name, 0)) * 1024 >= _NEARLY * limit
        for name, limit in ((name, resource.getrlimit(kind)[0]) for name, kind in limits)
    )


def _may_say_it(error: Exception) -> bool:
    if type(error) is ValueError:
        # What JAX makes of XLA's status where an array does not get its memory on the CPU.
        return _text(error).startswith(_XLA_STATUS)
    return type(error) in _OWN_WORDS or isinstance(error, OSError)


def _text(error: Exception) -> str:
    try:
        return str(error)[:_LONGEST]
    except Exception:
        # Whatever a program's own exception does when it is asked for its words.
        return ""


def _place_by_type(error: Exception) -> MemoryPlace | None:
    """Where the type says it, and its words are unknown."""
    kind = type(error)
    if (kind.__module__.partition(".")[0], kind.__name__) in _GPU_TYPES:
        return "gpu"
    if isinstance(error, MemoryError):
        return "host"
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return "host"
    return None


def _refusals(text: str) -> list[Allocation]:
    lines = [Line(number, line) for number, line in enumerate(text.splitlines(), start=1)]
    found = list(allocations(lines))
    told = {allocation.line for allocation in found}
    found += [
        Allocation(line.number, LIBRARY_REFUSED.place, True, of=LIBRARY_REFUSED.of)
        for line in lines
        if line.number not in told and LIBRARY_REFUSED.pattern.search(line.text)
    ]
    return sorted(found, key=lambda allocation: allocation.line)


def _shortage(told: Allocation, lines: list[str]) -> Shortage:
    text = lines[told.line - 1].strip()
    return Shortage(
        of=told.of,
        place=told.place,
        asked=told.requested or bytes_of_shape(told.shape, text),
        free=told.free,
        total=told.total,
        held=told.held,
        text=text,
    )


def _exact_place(found: Shortage, error: Exception) -> MemoryPlace:
    """What the process knows and the words leave open."""
    if found.place != "gpu" or found.of == "torch":
        return found.place
    if found.of == "cuda" and (_PINNING.search(_text(error)) or _pinning(error.__traceback__)):
        return "pinned"
    if not _SAYS_GPU.search(found.text) and _computes_on_cpu(type(error).__module__):
        return "host"
    return found.place


def _pinning(trace: TracebackType | None) -> bool:
    """Whether the innermost Python line asks for page-locked memory."""
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    line = linecache.getline(code.co_filename, trace.tb_lineno)
    return bool(_PINNING.search(f"{code.co_name} {line}"))


def _computes_on_cpu(module: str) -> bool:
    """Whether the framework of this module has started the CPU and nothing else.

    XLA's words for a want of memory are the same on the CPU.
    """
    if module.startswith(("jax", "jaxlib")):
        bridge: Any = sys.modules.get("jax._src.xla_bridge")
        platforms = set(getattr(bridge, "_backends", ()))
        return bool(platforms) and platforms <= {"cpu", "interpreter"}
    if module.startswith("tensorflow"):
        module_of_context = sys.modules.get("tensorflow.python.eager.context")
        context: Any = getattr(module_of_context, "_context", None)
        started = getattr(context, "_initialized", False)
        return bool(started) and not context.list_logical_devices("GPU")
    return False
