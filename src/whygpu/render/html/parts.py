"""The parts that pages consist of: lists, tables, facts, commands, and things folded away."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest
from typing import NamedTuple

from whygpu.model.standing import Standing
from whygpu.render.html.markup import (
    Child,
    Html,
    code,
    dd,
    details,
    div,
    dl,
    dt,
    li,
    p,
    pre,
    span,
    summary,
    table,
    tbody,
    td,
    th,
    thead,
    tr,
    ul,
)
from whygpu.render.marks import MARKS

NOTHING = "-"


class Section(NamedTuple):
    title: str
    content: Html


class Sheet(NamedTuple):
    """One answer, ready to be put on a page or into a notebook."""

    verb: str
    """As in "check"; the title of the page names it."""
    standing: Standing
    headline: str
    about: tuple[str, ...] = ()
    """What was examined, each part once, for the line below the headline."""
    top: Html | None = None
    """The picture below it, which has no title of its own."""
    sections: tuple[Section, ...] = ()


def prose(text: str) -> list[Child]:
    """A text whose words in backquotes are code."""
    return [code(part) if place % 2 else part for place, part in enumerate(text.split("`"))]


def sections(*titled: tuple[str, Child]) -> tuple[Section, ...]:
    """Those that contain something."""
    found = []
    for title, content in titled:
        whole = content if isinstance(content, Html) else div(content) if content else None
        if whole:
            found.append(Section(title, whole))
    return tuple(found)


def badge(text: str, kind: str) -> Html:
    """A word with a frame. The word says it; its colour only repeats it."""
    return span(text, kind=f"badge {kind}")


def state_mark(state: str, sign: str) -> Html:
    """A mark such as ✓. What it says must be beside it in words."""
    return span(sign, kind=f"mark {state}", aria_hidden="true")


def standing_mark(standing: Standing) -> Html:
    return state_mark(standing, MARKS[standing])


def items(texts: Iterable[Child]) -> Html | None:
    found = [li(text) for text in texts]
    return ul(found) if found else None


def facts(pairs: Iterable[tuple[str, Child]]) -> Html | None:
    """Names with what is known of them."""
    found = [div(dt(name), dd(value)) for name, value in pairs]
    return dl(found) if found else None


def command(text: str) -> Html:
    """A command to paste. The script of a page adds a button that copies it."""
    return div(pre(code(text), tabindex=0), kind="command")


def folded(title: Child, content: Child, *, is_open: bool = False) -> Html:
    return details(summary(title), div(content, kind="inside"), open=is_open)


def lines(text: Iterable[str]) -> Html:
    """Lines of a log or of source, as they are."""
    return div(pre("\n".join(text), tabindex=0), kind="lines")


def note(*content: Child) -> Html:
    return p(*content, kind="soft")


def cells_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Child]],
    *,
    classes: Sequence[str] = (),
    figures: Collection[str] = (),
    names: Collection[str] = (),
) -> Html | None:
    """A table; the first cell of a row is its name. Columns that are empty everywhere are left out.

    `title` names it for screen readers. Columns in `figures` have aligned digits, those in `names`
    may be wrapped anywhere, and the class of each row is in `classes`.
    """
    if not rows:
        return None
    kept = [
        place
        for place in range(len(columns))
        if any(row[place] not in (NOTHING, "") for row in rows)
    ]
    kinds = ["figure" if name in figures else "name" if name in names else "" for name in columns]
    head = tr(th(columns[place], scope="col", kind=kinds[place]) for place in kept)

    def cell(row: Sequence[Child], place: int) -> Html:
        if place == kept[0]:
            return th(row[place], scope="row")
        return td(row[place], kind=kinds[place])

    body = [
        tr((cell(row, place) for place in kept), kind=named or "")
        for row, named in zip_longest(rows, classes)
    ]
    return div(
        table(thead(head), tbody(body)), kind="wide", tabindex=0, role="region", aria_label=title
    )
