"""The answer of `whygpu memory`: who holds each GPU's memory, and what a new process would get."""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.derived import display_name
from whygpu.model.holders import GpuMemory, Holder, HoldersReport
from whygpu.model.observed import Known
from whygpu.model.units import size_text
from whygpu.render.html import svg
from whygpu.render.html.markup import Child, Html, join, p
from whygpu.render.html.parts import Sheet, cells_table, command, facts, items, note, sections
from whygpu.render.memory_holders import POLICIES, gpu_summary, no_gpus, who, would_take


def sheet(report: HoldersReport) -> Sheet:
    return Sheet(
        "memory",
        report.standing,
        _headline(report),
        sections=sections(
            *_gpus(report),
            ("Why the driver does not answer", items(report.causes)),
            ("On a GPU, a new process takes by default", _defaults(report)),
            ("Set in the environment", items(f"{name}={value}" for name, value in report.settings)),
            ("To change this", list(_changes(report))),
        ),
    )


def _headline(report: HoldersReport) -> str:
    if isinstance(report.gpus, Known):
        return "; ".join(f"GPU {gpu.number}: {gpu_summary(gpu)}" for gpu in report.gpus.value)
    return no_gpus(report.gpus)


def _gpus(report: HoldersReport) -> Iterator[tuple[str, Child]]:
    for gpu in report.gpus.value if isinstance(report.gpus, Known) else ():
        yield f"GPU {gpu.number}, {gpu.name}", [_holders(gpu), _newcomers(gpu)]


def _holders(gpu: GpuMemory) -> Html | None:
    if gpu.processes_unknown and not gpu.holders:
        return p(f"Its processes are unknown: {gpu.processes_unknown}")
    total = gpu.total_bytes.value if isinstance(gpu.total_bytes, Known) else None
    rows: list[tuple[Child, ...]] = [_row(holder, total) for holder in gpu.holders]
    reserved = gpu.reserved_bytes
    if isinstance(reserved, Known) and reserved.value:
        size = size_text(reserved.value)
        rows.append(("the driver itself", size, _share(reserved.value, total), ""))
    if isinstance(gpu.free_bytes, Known):
        size = size_text(gpu.free_bytes.value)
        rows.append(("free", size, _share(gpu.free_bytes.value, total, "bar-gpu"), ""))
    columns = ("held by", "memory", "of all", "what is known")
    names, figures = ("what is known",), ("memory",)
    table = cells_table(f"GPU {gpu.number}", columns, rows, names=names, figures=figures)
    return table or note("No process holds any.")


def _row(holder: Holder, total: int | None) -> tuple[Child, ...]:
    held = holder.held_bytes
    in_use = holder.in_use_bytes
    used = f"; in use: {size_text(in_use.value)}" if isinstance(in_use, Known) else ""
    if not isinstance(held, Known):
        return who(holder), "?", "", holder.what + used
    return who(holder), size_text(held.value), _share(held.value, total), holder.what + used


def _share(part: int, total: int | None, kind: str = "bar-cpu") -> Html | str:
    return svg.bar([(part / total, kind)]) if total else ""


def _newcomers(gpu: GpuMemory) -> Html | None:
    rows: list[tuple[str, Child]] = [
        (
            f"{display_name(each.framework)} {each.version}".rstrip(),
            would_take(each, gpu.free_bytes),
        )
        for each in gpu.new_processes
    ]
    return join(p("A new process would take:"), facts(rows)) if rows else None


def _defaults(report: HoldersReport) -> Html | None:
    if isinstance(report.gpus, Known):
        return None
    return facts((display_name(each.framework), each.says) for each in report.defaults)


def _changes(report: HoldersReport) -> Iterator[Html | None]:
    for text in POLICIES:
        yield command(text)
    yield facts(
        (display_name(default.framework), items(default.changed_by))
        for default in report.defaults
        if default.changed_by
    )
