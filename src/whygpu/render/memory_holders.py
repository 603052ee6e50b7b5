"""Who holds GPU memory, for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.derived import and_list, display_name
from whygpu.model.holders import Default, GpuMemory, Holder, HoldersReport, NewProcess
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.standing import Standing
from whygpu.model.units import size_text
from whygpu.render.marks import MARKS, headline
from whygpu.render.text_page import BOLD, Page

HOLDERS_SCHEMA = 1
POLICIES = (
    "whygpu run --memory growth -- python train.py",
    "whygpu run --memory 4GiB -- python train.py",
)
_INDENT = 14


def as_dict(report: HoldersReport) -> dict[str, Any]:
    return {"schema": HOLDERS_SCHEMA, **encode(report)}


def render_json(report: HoldersReport) -> str:
    return json.dumps(as_dict(report), indent=2) + "\n"


def render(
    report: HoldersReport, *, width: int, color: bool, marks: Mapping[Standing, str] = MARKS
) -> str:
    page = Page(width, color)
    if isinstance(report.gpus, Known):
        for place, gpu in enumerate(report.gpus.value):
            if place:
                page.line()
            headline(page, gpu.standing, f"GPU {gpu.number}, {gpu.name}: {gpu_summary(gpu)}", marks)
            _gpu(page, gpu)
        _causes(page, report.causes)
    else:
        headline(page, report.standing, no_gpus(report.gpus), marks)
        _causes(page, report.causes)
        page.section("On a GPU, a new process takes by default")
        for default in report.defaults:
            page.hanging(f"   {display_name(default.framework)}", default.says, 3 + _INDENT)
    _settings(page, report.settings)
    _how_to_change(page, report.defaults)
    return page.text()


def no_gpus(gpus: Absent | Unknown) -> str:
    if isinstance(gpus, Absent):
        return f"No NVIDIA GPU is seen on this machine (looked at {gpus.source})"
    return f"Cannot tell who holds GPU memory: {gpus.reason}"


def _causes(page: Page, causes: Sequence[str]) -> None:
    for cause in causes:
        page.item(cause)
    if causes:
        page.line("   Details: whygpu check")


def _gpu(page: Page, gpu: GpuMemory) -> None:
    if gpu.processes_unknown and not gpu.holders:
        page.hanging("  ", f"its processes are unknown: {gpu.processes_unknown}", 2)
    page.section("Held by")
    for holder in gpu.holders:
        _holder(page, holder)
    if isinstance(gpu.reserved_bytes, Known) and gpu.reserved_bytes.value:
        page.hanging(f"   {size_text(gpu.reserved_bytes.value)}", "the driver itself", _INDENT)
    elif not gpu.holders and not gpu.processes_unknown:
        page.line("   no process")
    page.section("A new process would take")
    for newcomer in gpu.new_processes:
        name = f"{display_name(newcomer.framework)} {newcomer.version}".rstrip()
        page.hanging(f"   {name}", would_take(newcomer, gpu.free_bytes), _column(gpu))


def _column(gpu: GpuMemory) -> int:
    names = (f"{display_name(n.framework)} {n.version}".rstrip() for n in gpu.new_processes)
    return 5 + max(map(len, names), default=0)


def gpu_summary(gpu: GpuMemory) -> str:
    total = gpu.total_bytes
    if not isinstance(total, Known):
        return f"its memory is unknown ({_missing(total)})"
    if not isinstance(gpu.free_bytes, Known):
        missing = _missing(gpu.free_bytes)
        return f"{size_text(total.value)}; how much is free is unknown ({missing})"
    return f"{size_text(gpu.free_bytes.value)} of {size_text(total.value)} are free"


def _missing(fact: Absent | Unknown) -> str:
    return fact.reason if isinstance(fact, Unknown) else f"there is no {fact.source}"


def _holder(page: Page, holder: Holder) -> None:
    held = size_text(holder.held_bytes.value) if isinstance(holder.held_bytes, Known) else "?"
    page.hanging(f"   {held}", who(holder), _INDENT, BOLD if holder.pid is not None else "")
    page.hanging("", holder.what, _INDENT)
    if isinstance(holder.in_use_bytes, Known):
        in_use = holder.in_use_bytes
        page.hanging("", f"in use: {size_text(in_use.value)} ({in_use.source})", _INDENT)


def who(holder: Holder) -> str:
    if holder.pid is None:
        return "a process that is not visible here"
    parts = [f"pid {holder.pid}", holder.command]
    if isinstance(holder.frameworks, Known) and holder.frameworks.value:
        parts.append(and_list([display_name(name) for name in holder.frameworks.value]))
    if isinstance(holder.is_asking, Known) and holder.is_asking.value:
        parts.append("the program that asks")
    if isinstance(holder.yours, Known) and not holder.yours.value:
        parts.append("another user's")
    return ", ".join(parts)


def would_take(newcomer: NewProcess, free: Observed[int]) -> str:
    asks, gets, why = newcomer.asks_bytes, newcomer.gets_bytes, newcomer.why
    if newcomer.start == "nothing":
        return f"nothing: {why}"
    if newcomer.start == "fails":
        return f"nothing, and it fails: {why}"
    if newcomer.start == "grows" and gets is not None:
        return f"what it needs, up to about {size_text(gets)}; {why}"
    if newcomer.start == "reserves" and asks is not None and gets is not None:
        if not newcomer.falls_short:
            return f"about {size_text(gets)}: {why}"
        left = (
            f"only {size_text(free.value)} are free" if isinstance(free, Known) else "there is less"
        )
        return (
            f"it asks for {size_text(asks)} ({why}), but {left}: it retries with 10 % "
            f"less each time, logs a warning for each try, and ends at about {size_text(gets)}"
        )
    return f"cannot tell: {why}"


def _settings(page: Page, settings: Sequence[tuple[str, str]]) -> None:
    if settings:
        named = and_list([f"{name}={value}" for name, value in settings])
        page.line()
        page.paragraph(f"Set in the environment: {named}")


def _how_to_change(page: Page, defaults: Sequence[Default]) -> None:
    page.section("To change this")
    for command in POLICIES:
        page.line(f"   {command}", BOLD)
    for default in defaults:
        name = display_name(default.framework)
        for place, way in enumerate(default.changed_by):
            page.line(f"   {'' if place else name:{_INDENT}}{way}")
