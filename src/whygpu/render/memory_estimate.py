"""How much memory a model needs on a GPU, for people and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from whygpu.model.codec import encode
from whygpu.model.derived import display_name
from whygpu.model.estimate import BatchMemory, MemoryEstimate, Mode, PartName
from whygpu.model.standing import Standing
from whygpu.model.units import size_text
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import BOLD, Page

ESTIMATE_SCHEMA = 1
PART_NAMES: dict[PartName, str] = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimiser",
    "activations": "activations",
    "inputs": "inputs",
    "results": "results",
    "workspace": "workspace",
}
PHASES = {
    "forward": "in the forward pass",
    "backward": "in the backward pass",
    "update": "in the optimiser's update",
}
_DOING: dict[Mode, str] = {"train": "training", "infer": "inference", "call": "called"}
_INDENT, _COLUMN = 3, 26
_LAST_LINES = 12
_NOT_OWN = ("whygpu_work", "site-packages", "dist-packages", "<frozen", "/lib/python3")
_OF_JAX = """\
--------------------
For simplicity, JAX has removed its internal frames from the traceback of the following exception. \
Set JAX_TRACEBACK_FILTERING=off to include these.
"""
_MISSING = re.compile(r"^(?:ModuleNotFoundError|ImportError): No module named '([^']+)'")


def as_dict(estimate: MemoryEstimate) -> dict[str, Any]:
    return {
        "schema": ESTIMATE_SCHEMA,
        **encode(estimate),
        "total_bytes": estimate.total_bytes,
    }


def render_json(estimate: MemoryEstimate) -> str:
    return json.dumps(as_dict(estimate), indent=2) + "\n"


def render(
    estimate: MemoryEstimate, *, width: int, color: bool, marks: Mapping[Standing, str] = MARKS
) -> str:
    page = Page(width, color)
    headline(page, estimate.standing, summary(estimate), marks)
    if estimate.at is None:
        _failure(page, estimate)
        return page.text()
    _parts(page, estimate, estimate.at)
    if estimate.room is not None:
        _fitting(page, estimate)
    _notes(page, estimate)
    return page.text()


def summary(estimate: MemoryEstimate) -> str:
    if estimate.at is None:
        return f"Cannot tell how much memory {estimate.what} needs: {estimate.why}"
    amount = amount_text(estimate, estimate.at)
    subject = f"{estimate.what}, {_DOING[estimate.mode]} with batch {estimate.at.batch}"
    if estimate.mode == "call" and estimate.room is not None and not _other_batches(estimate):
        subject = f"{estimate.what}, called once"
    if estimate.room is None:
        unknown = f"; whether it fits here is unknown: {estimate.why}" if estimate.why else "."
        return f"{subject}, takes {amount} on a GPU{unknown}"
    there = f"{size_text(estimate.room.bytes)} {estimate.room.where}"
    if estimate.verdict == "fits":
        return f"{subject}, fits: it takes {amount}, and there are {there}."
    if estimate.verdict == "unknown":
        sizes = f"it takes {amount}, and there are {there}"
        return f"{subject}: cannot tell whether it fits ({sizes}): {estimate.why}."
    return f"{subject}, does not fit: it takes {amount}, and there are {there}."


def amount_text(estimate: MemoryEstimate, at: BatchMemory) -> str:
    if not at.is_range:
        return f"about {size_text(at.needs_bytes + estimate.overhead_bytes)}"
    least, most = (size + estimate.overhead_bytes for size in (at.least_bytes, at.most_bytes))
    return f"{size_text(least)} to {size_text(most)}"


def _other_batches(estimate: MemoryEstimate) -> bool:
    return estimate.largest is not None or estimate.next_batch is not None


def _failure(page: Page, estimate: MemoryEstimate) -> None:
    missing = _MISSING.search(estimate.why)
    if missing is not None:
        page.section("What to do")
        text = (
            f"install {missing[1]} in the environment that was used, or name another one with "
            "--python"
        )
        page.item(text)
    lines = [
        line
        for line in own_lines(estimate.traceback)
        # The headline has the error's own words.
        if line.startswith(" ") or line not in f"{estimate.why}\n{_OF_JAX}"
    ][-_LAST_LINES:]
    if lines:
        page.section("Where")
        for line in lines:
            page.line(f"   {line}")


def own_lines(traceback: str) -> list[str]:
    """The frames of the user's program and the error, without those of libraries and of whygpu."""
    kept: list[str] = []
    own = False
    for line in traceback.splitlines():
        if line.startswith("  File "):
            own = not any(part in line for part in _NOT_OWN)
        elif not line.startswith(" "):
            own = not line.startswith("Traceback")
        if own:
            kept.append(line)
    return kept


class PeakRow(NamedTuple):
    """A part of the memory at the peak, or a sum."""

    name: str
    bytes: int
    text: str
    is_sum: bool = False


def _parts(page: Page, estimate: MemoryEstimate, at: BatchMemory) -> None:
    page.section(peak_title(at))
    for row in peak_rows(estimate, at):
        label = f"{' ' * _INDENT}{row.name:<{_COLUMN - _INDENT}}{size_text(row.bytes):>9}   "
        page.hanging(label, row.text, len(label), mark=BOLD if row.is_sum else "")


def peak_title(at: BatchMemory) -> str:
    when = PHASES.get(at.phase)
    return "At its peak" + (f", {when}" if when else "")


def peak_rows(estimate: MemoryEstimate, at: BatchMemory) -> Iterator[PeakRow]:
    for part in at.parts:
        if part.bytes:
            how = f"{part.how}; {part.note}" if part.note else part.how
            yield PeakRow(PART_NAMES[part.name], part.bytes, how)
    would_report = f"what {counter_of(estimate.framework)} would report"
    yield PeakRow("peak", at.peak_bytes, would_report, is_sum=True)
    if at.needs_bytes > at.peak_bytes:
        gaps = at.needs_bytes - at.peak_bytes
        yield PeakRow("between its arrays", gaps, "gaps that its allocator cannot use")
    yield PeakRow("CUDA and libraries", estimate.overhead_bytes, "about; measured on an H200")
    text = f"or {amount_text(estimate, at)}"
    yield PeakRow("total", estimate.total_bytes or 0, text if at.is_range else "", is_sum=True)


def counter_of(framework: str) -> str:
    return {
        "torch": "torch.cuda.max_memory_allocated()",
        "jax": "XLA's allocator",
        "tensorflow": "tf.config.experimental.get_memory_info()",
    }[framework]


def _fitting(page: Page, estimate: MemoryEstimate) -> None:
    page.section("What fits")
    for text in fitting_lines(estimate):
        page.item(text)


def fitting_lines(estimate: MemoryEstimate) -> Iterator[str]:
    """What fits into the room that the estimate is compared with."""
    found = estimate.largest
    if found is not None:
        text = f"batch {found.batch} is the largest that fits"
        if estimate.next_batch is None:
            text = f"batch {found.batch} fits; no larger one was tried"
        elif found.is_range:
            text = f"batch {found.batch} fits; {estimate.next_batch} may not"
        elif estimate.next_batch > found.batch + 1:
            text = f"batch {found.batch} fits; {estimate.next_batch} does not"
        yield f"{text} ({amount_text(estimate, found).removeprefix('about ')})"
    elif estimate.next_batch is not None:
        yield "not even a batch of 1 fits"
    else:
        yield "other batches were not tried: the function takes no batch_size"
    unsure = estimate.at is not None and estimate.at.is_range
    missing = "may not fit either" if unsure else "does not fit either"
    for other in estimate.others:
        answer = "fits" if other.fits else missing
        yield f"{other.name}, batch {other.batch}: {size_text(other.total_bytes)}, {answer}"


def _notes(page: Page, estimate: MemoryEstimate) -> None:
    page.line()
    for text in note_lines(estimate):
        page.paragraph(text)


def note_lines(estimate: MemoryEstimate) -> Iterator[str]:
    """Where the estimate comes from, and what to know about it."""
    version = estimate.source or display_name(estimate.framework)
    yield f"By {version}."
    for note in estimate.notes:
        text = note[:1].upper() + note[1:]
        yield text if text.endswith(".") else f"{text}."
    if estimate.room is None:
        yield 'To see whether it fits, give --gpu "RTX 4090", or --limit 8GiB.'
