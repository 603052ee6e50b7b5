"""The answer of `whygpu diff`: what changed between two machines, and which change matters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.model.derived import display_name
from whygpu.model.differences import DiffAnswer, Difference, Reason
from whygpu.render.diff_text import reason_title, side_text, tried_text, values_text
from whygpu.render.html.markup import Child, Html, article, b, h3, p
from whygpu.render.html.parts import (
    Sheet,
    badge,
    cells_table,
    facts,
    folded,
    items,
    note,
    sections,
)
from whygpu.render.text_page import sentence


def sheet(answer: DiffAnswer) -> Sheet:
    sides = [("before", side_text(answer.before)), ("after", side_text(answer.after))]
    return Sheet(
        "diff",
        answer.standing,
        sentence(answer.headline),
        (),
        facts(sides),
        sections(
            ("Why", [_reason(reason, answer) for reason in answer.reasons]),
            ("Frameworks", _frameworks(answer)),
            ("Every difference", _differences(answer)),
            ("What limits this answer", items(answer.notes)),
        ),
    )


def _reason(reason: Reason, answer: DiffAnswer) -> Html:
    severity = reason.finding.severity if reason.finding is not None else "warning"
    return article(
        h3(reason_title(reason)),
        p(reason.finding.message) if reason.finding is not None else None,
        list(_explained(reason, answer)),
        kind=f"finding {severity}",
    )


def _explained(reason: Reason, answer: DiffAnswer) -> Iterator[Html | None]:
    if not reason.sets:
        yield p(f"Cannot tell which difference it is: {reason.unexplained}.")
        suspects = [answer.differences[place] for place in reason.suspects]
        if suspects:
            yield p("What changed and could have to do with it:")
            yield items(map(_named, suspects))
        return
    for order, each in enumerate(reason.sets):
        yield p(b("Because of" if order == 0 else "Or because of"))
        yield items(_named(answer.differences[place]) for place in each)
    yield note(tried_text(reason, answer))


def _named(item: Difference) -> str:
    return f"{item.title}: {values_text(item)}"


def _frameworks(answer: DiffAnswer) -> Html | None:
    rows: list[Sequence[Child]] = [
        (display_name(item.name), badge(item.before, item.before), badge(item.after, item.after))
        for item in answer.frameworks
    ]
    return cells_table("Frameworks", ("framework", "before", "after"), rows)


def _differences(answer: DiffAnswer) -> Html | None:
    if not answer.differences:
        return None
    rows: list[Sequence[Child]] = [
        (item.title, values_text(item), "yes" if place in answer.explaining else "")
        for place, item in enumerate(answer.differences)
    ]
    columns = ("what", "before and after", "explains something")
    table = cells_table("Every difference", columns, rows, names=("before and after",))
    return folded(f"{len(rows):,} in all", table)
