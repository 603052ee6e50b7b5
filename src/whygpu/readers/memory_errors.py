"""Whether an exception, or the output of a program, says that memory has run out.

An exception is judged by its type and its message, against the table that logs are read with. The
type alone is seldom enough: TensorFlow also raises ResourceExhaustedError for a full disk.
"""

from __future__ import annotations

import builtins
import errno
import linecache
import sys
from collections.abc import Iterator
from typing import Any

from whygpu.model.lazy_regex import late
from whygpu.model.log import Allocation, Line
from whygpu.model.shortage import MemoryPlace, Shortage
from whygpu.readers.allocations import allocations
from whygpu.tables.out_of_memory import (
    LIBRARY_REFUSED,
    NO_ALGORITHM,
    NO_START,
    PERHAPS,
    bytes_of_shape,
)

_LONGEST = 1 << 16
"""Characters of a message that are read. TensorFlow appends the graph after the reason."""
_MOST_LINKS = 50
_RAISED_BY_LIBRARIES = (RuntimeError, SystemError, MemoryError, OSError, ImportError, Exception)
"""Built-in types that libraries raise when memory runs out. A KeyError whose message happens to
mention memory is just a KeyError."""
_XLA_STATUS = "RESOURCE_EXHAUSTED: "
_GPU_TYPES = (("torch", "OutOfMemoryError"), ("cupy", "OutOfMemoryError"))
_OTHER_MEMORY_ERRORS = late(r"write\+execute memory|parser stack overflow")
"""A MemoryError with another cause: cffi on a system that forbids writable code; the parser of old
Python releases."""
_PINNING = late(r"pin_memory|[Pp]in memory thread|cu(?:da)?(?:Mem)?(?:HostAlloc|AllocHost)")
_SAYS_GPU = late(r"GPU|CUDA|on device \d")
_NEAR_LIMIT = 0.8
"""Above this fraction of its limit, a process may have been refused memory."""


def shortage_in(error: BaseException) -> Shortage | None:
    """What an exception, or one that it was raised from, says about memory that ran out."""
    for link in _chain(error):
        found = _of_one(link)
        if found is not None:
            return found
    return None


def shortage_in_text(text: str) -> Shortage | None:
    """The last request for memory that a program's output shows as refused.

    A request that was repeated with a smaller size does not count.
    """
    refused = [found for found in _refusals(text) if found.final]
    if not refused:
        return None
    last = refused[-1]
    # The last line of a program often repeats an earlier one without its numbers.
    detailed = next((a for a in reversed(refused) if a.place == last.place and a.requested), last)
    return _shortage(detailed, text.splitlines())


def possible_shortage_in(text: str) -> str:
    """The first line whose message may be due to a lack of memory, and may have other causes."""
    return next((line.strip() for line in text.splitlines() if PERHAPS.pattern.search(line)), "")


def is_about_the_start(text: str) -> bool:
    """Whether the GPU could not be started, for which no batch is to blame."""
    return NO_START.search(text) is not None


def no_algorithm_in(error: BaseException) -> Shortage | None:
    """That XLA found no algorithm, as a lack of memory: for a caller that knows of a refusal."""
    for link in _chain(error):
        line = _no_algorithm_line(_text(link))
        if line:
            return Shortage(NO_ALGORITHM.of, NO_ALGORITHM.place, None, None, None, None, line)
    return None


def no_algorithm_for_lack_of_memory(exception: str, log: str) -> str:
    """The line that says that XLA found no algorithm, if the log has a refused request, even one
    that the program could do without; otherwise empty."""
    line = _no_algorithm_line(exception)
    refused = line and any(request.place == "gpu" for request in _refusals(log))
    return line if refused else ""


def _no_algorithm_line(text: str) -> str:
    lines = text[:_LONGEST].splitlines()
    return next((line.strip() for line in lines if NO_ALGORITHM.pattern.search(line)), "")


def _chain(error: BaseException) -> Iterator[Exception]:
    """The exception and those that it was raised from, outermost first."""
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
    """Whether it was raised in a handler to report the first error, not by a bug of the handler."""
    return type(error).__module__ != "builtins" or type(error) in (RuntimeError, Exception)


def _of_one(error: Exception) -> Shortage | None:
    kind = type(error)
    message = _text(error)
    if kind.__module__ == "builtins" and not _may_be_shortage(error):
        return None
    if isinstance(error, MemoryError) and _OTHER_MEMORY_ERRORS.search(message):
        return None
    text = f"{kind.__name__}: {message}"
    refused = [a for a in _refusals(text) if a.of != "kernel" or kind.__name__ == _GPU_TYPES[0][1]]
    first = refused[0] if refused else None
    detailed = next((a for a in refused if a.requested or a.shape), first)
    if detailed is not None:
        found = _shortage(detailed, text.splitlines())
        return found._replace(place=_exact_place(found, error))
    line = possible_shortage_in(text)
    if line and _was_near_its_limit():
        return Shortage(PERHAPS.of, PERHAPS.place, None, None, None, None, line)
    place = _place_by_type(error)
    return Shortage("", place, None, None, None, None, text) if place is not None else None


def _was_near_its_limit() -> bool:
    """Whether this process has reached nearly all of its limit (ulimit -v, ulimit -d)."""
    if sys.platform == "win32":
        return False
    try:
        import resource

        with open("/proc/self/status", encoding="ascii", errors="replace") as stream:
            held = dict(line.split()[:2] for line in stream if line.startswith("Vm"))
    except (ImportError, OSError):
        return False
    limits = (("VmPeak:", resource.RLIMIT_AS), ("VmData:", resource.RLIMIT_DATA))
    return any(
        limit != resource.RLIM_INFINITY and int(held.get(name, 0)) * 1024 >= _NEAR_LIMIT * limit
        for name, limit in ((name, resource.getrlimit(kind)[0]) for name, kind in limits)
    )


def _may_be_shortage(error: Exception) -> bool:
    if type(error) is ValueError:
        # JAX raises it with XLA's status when an array does not get its memory on the CPU.
        return _text(error).startswith(_XLA_STATUS)
    return type(error) in _RAISED_BY_LIBRARIES or isinstance(error, OSError)


def _text(error: Exception) -> str:
    try:
        return str(error)[:_LONGEST]
    except Exception:
        # The __str__ of a program's own exception may do anything.
        return ""


def _place_by_type(error: Exception) -> MemoryPlace | None:
    """For types that mean a lack of memory whatever their message is."""
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
    read = {allocation.line for allocation in found}
    found += [
        Allocation(line.number, LIBRARY_REFUSED.place, True, of=LIBRARY_REFUSED.of)
        for line in lines
        if line.number not in read and LIBRARY_REFUSED.pattern.search(line.text)
    ]
    return sorted(found, key=lambda allocation: allocation.line)


def _shortage(refused: Allocation, lines: list[str]) -> Shortage:
    text = lines[refused.line - 1].strip()
    return Shortage(
        of=refused.of,
        place=refused.place,
        asked=refused.requested or bytes_of_shape(refused.shape, text),
        free=refused.free,
        total=refused.total,
        held=refused.held,
        text=text,
    )


def _exact_place(found: Shortage, error: Exception) -> MemoryPlace:
    """The place of the memory, if the process knows more than the message says."""
    if found.place != "gpu" or found.of == "torch":
        return found.place
    if found.of == "cuda" and _is_about_pinning(error):
        return "pinned"
    if not _SAYS_GPU.search(found.text) and _computes_on_cpu(type(error).__module__):
        return "host"
    return found.place


def _is_about_pinning(error: Exception) -> bool:
    """Whether its message, or the innermost line of Python, is about page-locked memory."""
    trace = error.__traceback__
    if _PINNING.search(_text(error)):
        return True
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    line = linecache.getline(code.co_filename, trace.tb_lineno)
    return bool(_PINNING.search(f"{code.co_name} {line}"))


def _computes_on_cpu(module: str) -> bool:
    """Whether the framework of this module has started the CPU and nothing else.

    XLA's messages about memory are the same on the CPU.
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
