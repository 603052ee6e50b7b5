"""What `whygpu run` would change for a program, each change with its reason."""

from __future__ import annotations

from whygpu.model.policy import LaunchPlan
from whygpu.model.shell import joined
from whygpu.render.html.markup import Child, code
from whygpu.render.html.parts import Sheet, cells_table, items, sections
from whygpu.render.run_text import action_text, call_text


def sheet(plan: LaunchPlan) -> Sheet:
    changes: list[tuple[Child, ...]] = [
        (code(action_text(each)), each.reason) for each in plan.actions
    ]
    calls: list[tuple[Child, ...]] = [(code(call_text(each)), each.reason) for each in plan.calls]
    repairs: list[tuple[Child, ...]] = [
        (f"{each.code} {each.what}", each.why) for each in plan.repairs
    ]
    return Sheet(
        "run --dry-run",
        "answered",
        f"Would run {joined(plan.argv)}",
        sections=sections(
            ("Changes, for this program and what it starts", _table("Changes", changes)),
            ("Calls, after the import of each framework", _table("Calls", calls)),
            ("Repairs", _table("Repairs", repairs)),
            ("Good to know", items(plan.remarks)),
        ),
    )


def _table(title: str, rows: list[tuple[Child, ...]]) -> Child:
    return cells_table(title, ("what", "why"), rows, names=("why",))
