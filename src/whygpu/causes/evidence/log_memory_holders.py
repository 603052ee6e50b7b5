"""Who holds the GPU's memory, by what PyTorch or nvidia-smi prints of other processes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from whygpu.causes.evidence.log_memory_figures import Figures, text_of
from whygpu.causes.evidence.watched_memory import Judgement
from whygpu.model.lazy_regex import late
from whygpu.model.log import Allocation, Log
from whygpu.model.units import MIB, logged_size, size_text

_NAMED_PROCESS = late(
    r"\bProcess (?P<pid>\d{1,9}) (?:has|holds|uses) (?P<size>[\d.]{1,12}) (?P<unit>[KMG]i?B)"
    r"(?: of)?(?: (?:GPU )?memory)? in use\b"
)
_THIS_PROCESS = late(r"\bthis process (?:has|holds|uses) ")
"""PyTorch lists the processes on the GPU. In a container it may not recognise itself."""


def by_named_process(log: Log, refused: Sequence[Allocation], figures: Figures) -> Judgement | None:
    """Another process holds a good part, without which the request would have been fulfilled."""
    texts = [text_of(log, allocation) for allocation in refused]
    named = [match for text in texts for match in _NAMED_PROCESS.finditer(text)]
    largest = max(named, key=_size_held, default=None)
    total, needed = figures.total_most, max(0, (figures.requested or 0) - (figures.free or 0))
    knows_itself = any(_THIS_PROCESS.search(text) for text in texts)
    if largest is None or not (knows_itself or figures.held is None):
        return None
    others = _size_held(largest)
    if others < needed or (total is not None and others < total // 4):
        return None
    whole = f" of the GPU's {size_text(total)}" if total is not None else ""
    who = "another process" if knows_itself else f"process {largest['pid']}"
    doubt = "" if knows_itself else ", unless that is the program itself"
    return "other-process", "likely", f"{who} holds {size_text(others)}{whole}{doubt}", "too-big"


def _size_held(match: re.Match[str]) -> int:
    return logged_size(match["size"], match["unit"]) or 0


_TABLE_CELL = late(
    r"\b(?P<used>\d{1,7})MiB\s{0,4}/\s{0,4}(?P<all>\d{2,7})MiB\s{0,4}[|│]", re.MULTILINE
)
"""How the table of nvidia-smi shows the memory of a GPU: |  39800MiB / 40960MiB |"""
_NEARLY_ALL = 0.9


def by_table(log: Log, refused: Sequence[Allocation], figures: Figures) -> Judgement | None:
    """A table of nvidia-smi before the failure shows that the memory of each GPU is taken."""
    first = min((a.line for a in refused), default=0)
    if figures.free is not None or figures.held is not None or log.progress:
        return None
    cells = [match.groups for match in log.find(_TABLE_CELL) if match.line < first]
    taken = [(int(cell["used"] or 0), int(cell["all"] or 0)) for cell in cells]
    if not taken or any(used < _NEARLY_ALL * whole for used, whole in taken):
        return None
    used, whole = max(taken)
    return (
        "other-process",
        "likely",
        f"nvidia-smi shows {size_text(used * MIB)} of {size_text(whole * MIB)} in use, if that was "
        "before the program started",
        "too-big",
    )
