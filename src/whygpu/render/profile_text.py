"""Why the steps of a program take as long as they do, for people and as JSON."""

from __future__ import annotations

import os.path
from collections.abc import Iterator
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.profile import Category, Gain, ProfileAnswer, SourceLine, TimeShare, percent_text
from whygpu.render.text_page import Page

SMALLEST_SHOWN = 0.01
LONG_AFTER = 0.05
"""Of the time of the steps: what comes after the last one is mentioned if it took longer."""
TITLES: dict[Category, str] = {
    "computing": "computing",
    "input": "waiting for input",
    "copies": "copies and conversions",
    "synchronisation": "waiting for the GPU",
    "launches": "launching work",
    "cpu-operations": "operations on the CPU",
    "compilation": "compilation",
    "evaluation": "evaluation",
    "checkpointing": "saving checkpoints",
    "logging": "logging and printing",
    "program": "the program's own code",
    "unknown": "unknown",
}
_GPU_TITLES: dict[Category, str] = {
    "computing": "computing on the GPU",
    "synchronisation": "synchronisation",
}
"""Where the GPU's own work was recorded, and waiting for it while it computes is computing."""


def profile_dict(answer: ProfileAnswer) -> dict[str, Any]:
    """The answer as a part of the report of a run."""
    data: dict[str, Any] = encode(answer)
    if answer.window is not None:
        data["window"]["step_seconds"] = answer.window.step_seconds
    return {"headline": answer.headline, **data}


def render(answer: ProfileAnswer, *, width: int = 80) -> str:
    page = Page(width, color=False)
    page.hanging("", answer.headline, 0)
    for share in answer.shares:
        if share.share >= SMALLEST_SHOWN:
            label = f"{percent_text(share.share):>6}  {title_of(share, answer)}"
            page.hanging(label, share_text(share), 34)
    if answer.gains:
        page.section("what would help")
        for gain in answer.gains:
            page.hanging("  -", gain_text(gain), 4)
    if answer.window is not None or answer.notes:
        page.section("how this was measured")
        for line in method_lines(answer):
            page.hanging("  -", line, 4)
    return page.text()


def title_of(share: TimeShare, answer: ProfileAnswer) -> str:
    if answer.gpu_timed and share.category in _GPU_TITLES:
        return _GPU_TITLES[share.category]
    return TITLES[share.category]


def share_text(share: TimeShare) -> str:
    parts = []
    if share.where is not None:
        parts.append(f"{_place(share.where)}  {share.where.text}".rstrip())
    if share.detail:
        parts.append(share.detail)
    if share.inside is not None:
        parts.append(f"inside: {_place(share.inside)}  {share.inside.text}".rstrip())
    return "; ".join(parts)


def _place(line: SourceLine) -> str:
    return f"{os.path.basename(line.file)}:{line.line}"


def gain_text(gain: Gain) -> str:
    now = duration_text(gain.from_seconds)
    if gain.at_most:
        limit = gain.from_seconds / max(gain.to_low, 1e-9)
        factor = f"{min(limit, 100.0):.1f} x faster"
        fastest = f"up to {factor} by itself" if gain.or_more else f"at most {factor}"
        return f"{gain.change}: {fastest}; {gain.assuming}"
    slow, fast = gain.from_seconds / gain.to_high, gain.from_seconds / max(gain.to_low, 1e-9)
    factor = f"{slow:.1f}" if f"{slow:.1f}" == f"{fast:.1f}" else f"{slow:.1f} to {fast:.1f}"
    low, high = duration_text(gain.to_low), duration_text(gain.to_high)
    after = low if low == high else f"{low} to {high}"
    more = (" or more", " or less") if gain.or_more else ("", "")
    return (
        f"{gain.change}: {factor} x faster{more[0]} (a step from {now} to {after}{more[1]}), "
        f"if {gain.assuming}"
    )


def method_lines(answer: ProfileAnswer) -> Iterator[str]:
    window = answer.window
    if window is not None:
        yield (
            f"{window.steps:,} {window.made_by}, "
            f"{duration_text(window.step_seconds)} each; {answer.samples:,} samples of the stack, "
            f"which took {percent_text(answer.cost)} of the time; shares are exact to about "
            f"{max(round(answer.margin * 100), 1)} points"
        )
        before = f"{duration_text(answer.before_seconds)} before them are not counted"
        if answer.compiling_before:
            before += f", with {duration_text(answer.compiling_before)} of compilation"
        yield before
        if answer.after_seconds >= LONG_AFTER * window.seconds:
            after = f"{duration_text(answer.after_seconds)} after them are not counted"
            if answer.after_mainly is not None:
                after += f", most of it {TITLES[answer.after_mainly]}"
            yield after
    yield from answer.notes


def duration_text(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.01 else f"{seconds * 1e3:.2g} ms"
