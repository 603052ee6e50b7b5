"""Failed requests for memory, with the figures in the log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from whygpu.model.lazy_regex import late
from whygpu.model.log import NO_FAILURE_AFTER, Allocation, Line, Status
from whygpu.model.units import logged_size
from whygpu.tables.out_of_memory import (
    PAGING_FILE,
    SECOND_OF_PAIR,
    TORCH,
    TORCH_ASYNC,
    TORCH_PARTS,
    Form,
    out_of_memory,
)

ABOUT_MEMORY = late(
    r"alloc|memory|oom|malloc|shm|dst tensor|winerror|no space|buffer size|error 2\b|kv cache"
    r"|vram|killed signal|compiler error: killed"
    rf"|{PAGING_FILE}",
    re.I,
)
_OUT_OF_MEMORY = ("CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation")
_WRAPPED = 3
"""The most further lines into which a terminal may have wrapped a long message."""
_LONGEST_MESSAGE = 5
"""The most further lines of a message that has a line for each number."""
_WIDEST = 400
"""Characters of a line that are joined with its neighbour."""


_NODE_ON_CPU = re.compile(r"\s{0,8}\[\[Node: [^\n]{1,600}_device=\"[^\"\n]{0,80}\b(?:cpu|CPU):\d")
"""The operation that TensorFlow 1 names below its message, if it is one of the CPU."""


def allocations(lines: Sequence[Line]) -> tuple[Allocation, ...]:
    found = [each for index, line in enumerate(lines) for each in _of_line(line, lines, index)]
    on_host = {each.shape for each in found if each.place == "host" and each.shape}
    # The record that comes before the exception does not say where the operation is.
    return tuple(
        each._replace(place="host") if _is_same_request(each, on_host) else each for each in found
    )


def _is_same_request(allocation: Allocation, shapes: set[str]) -> bool:
    return allocation.of == "tensorflow" and allocation.total is None and allocation.shape in shapes


def by_status(statuses: Sequence[Status], known: Sequence[Allocation]) -> tuple[Allocation, ...]:
    """Requests that CUDA refused with its code for lack of memory, in whatever words."""
    lines = {allocation.line for allocation in known}
    return tuple(
        Allocation(status.line, "gpu", final=True, of="cuda")
        for status in statuses
        if status.name in _OUT_OF_MEMORY and status.line not in lines
    )


def _of_line(line: Line, lines: Sequence[Line], index: int) -> Iterator[Allocation]:
    if not ABOUT_MEMORY.search(line.text) or NO_FAILURE_AFTER.search(line.text):
        return
    if "out of memory" in line.text or "Tried to allocate" in line.text:
        asynchronous = TORCH_ASYNC.search(_with_continuation(lines, index, _LONGEST_MESSAGE))
        if asynchronous is not None:
            yield _of_torch(line, asynchronous)
            return
        torch = TORCH.search(_with_continuation(lines, index, _WRAPPED))
        if torch and (torch["before"] is not None or "capacity" in torch["rest"]):
            yield _of_torch(line, torch)
            return
    found = out_of_memory(line.text)
    number = line.number
    if found is None:
        wrapped = _over_the_lines_end(lines, index)
        if wrapped is None:
            return
        number, found = wrapped
    form, match = found
    sizes = _sizes(match)
    following = lines[index + 1].text if index + 1 < len(lines) else ""
    of_cpu = form.of == "tensorflow" and _NODE_ON_CPU.match(following) is not None
    yield Allocation(
        number,
        "host" if of_cpu else form.place,
        final=form.outcome == "refused",
        requested=sizes.get("asked"),
        free=sizes.get("free"),
        total=sizes.get("total"),
        held=sizes.get("held"),
        shape=match.groupdict().get("shape") or "",
        of=form.of,
    )


def _with_continuation(lines: Sequence[Line], index: int, most: int) -> str:
    parts = [lines[index].text]
    for line in lines[index + 1 : index + 1 + most]:
        if line.level != "none" or line.text.startswith(("Traceback", "  File ")):
            break
        parts.append(line.text)
    return " ".join(parts)


def _over_the_lines_end(
    lines: Sequence[Line], index: int
) -> tuple[int, tuple[Form, re.Match[str]]] | None:
    """A message that begins before this line, and the line where it does."""
    text = lines[index].text[:_WIDEST]
    following = lines[index]
    for before in lines[max(0, index - _WRAPPED) : index][::-1]:
        if following.level != "none":
            return None
        head = before.text.rstrip()[-_WIDEST:]
        text = f"{head} {text}"
        found = out_of_memory(text)
        if found and found[1].start() < len(head):
            # A match within that line was already reported for it.
            return (before.number, found) if found[1].end() > len(head) else None
        following = before
    return None


def _sizes(match: re.Match[str]) -> dict[str, int | None]:
    """The named sizes of a form; alternatives of a form are numbered: asked, asked_2."""
    groups = match.groupdict()
    return {
        name.partition("_")[0]: logged_size(value, _unit(match, name))
        for name, value in groups.items()
        if value and not name.endswith("_unit") and name != "shape"
    }


def _unit(match: re.Match[str], name: str) -> str | None:
    """The unit of a size; the first number of 31.44/47.38 GiB has that of the second."""
    unit: str | None = match[f"{name}_unit"]
    if unit is None:
        end = match.end(name)
        second = SECOND_OF_PAIR.match(match.string[end : end + _WIDEST])
        unit = second["unit"] if second else None
    return unit


def _of_torch(line: Line, match: re.Match[str]) -> Allocation:
    message = (match.groupdict().get("before") or "") + match["rest"]
    sizes: dict[str, int | None] = {}
    for name, pattern in TORCH_PARTS.items():
        part = pattern.search(message)
        sizes[name] = next(iter(_sizes(part).values()), None) if part else None
    held, unused, reserved = sizes["held"], sizes["unused"], sizes["reserved"]
    if reserved is None and held is not None and unused is not None:
        reserved = held + unused
    total, free, allowed = sizes["total"], sizes["free"], sizes["allowed"]
    if sizes["other"] is not None and held is not None:
        held += sizes["other"]
        free = max(0, total - held) if total is not None else None
    if allowed is not None and total is not None and allowed < total:
        total = allowed
        free = min(free or 0, max(0, allowed - (reserved or held or 0)))
    return Allocation(
        line.number,
        "gpu",
        final=True,
        requested=logged_size(match["asked"], match["asked_unit"]),
        free=free,
        total=total,
        held=held,
        reserved=reserved,
        of="torch",
    )
