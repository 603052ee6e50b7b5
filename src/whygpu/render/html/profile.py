"""Where the time of a program's steps went, as shares of a whole, and what would help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.model.profile import ProfileAnswer, ProfileVerdict, percent_text
from whygpu.model.standing import Standing
from whygpu.render.html import svg
from whygpu.render.html.markup import Child, Html, p
from whygpu.render.html.parts import Sheet, cells_table, items, sections
from whygpu.render.profile_text import (
    SMALLEST_SHOWN,
    gain_text,
    method_lines,
    share_text,
    title_of,
)

_STANDINGS: dict[ProfileVerdict, Standing] = {
    "computing": "fine",
    "waiting": "attention",
}
"""A verdict that is not here could not be reached."""


def sheet(answer: ProfileAnswer) -> Sheet:
    standing = _STANDINGS.get(answer.verdict, "unknown")
    return Sheet(
        "run --profile",
        standing,
        answer.headline,
        sections=sections(*profile_sections(answer)),
    )


def profile_sections(answer: ProfileAnswer) -> Iterator[tuple[str, Child]]:
    yield "Where the time of a step went", [p(answer.headline), _whole(answer), _shares(answer)]
    yield "What would make it faster", items(map(gain_text, answer.gains))
    yield "How the time was measured", items(method_lines(answer))


def _whole(answer: ProfileAnswer) -> Html | None:
    """All shares side by side, in the colours of their rows."""
    if not answer.shares:
        return None
    parts = [(share.share, _color(place)) for place, share in enumerate(answer.shares)]
    return svg.bar(parts)


def _color(place: int) -> str:
    return f"mark{place % svg.COLORS}"


def _shares(answer: ProfileAnswer) -> Html | None:
    rows: list[Sequence[Child]] = [
        (
            title_of(share, answer),
            percent_text(share.share),
            svg.bar([(share.share, _color(place))]),
            share_text(share),
        )
        for place, share in enumerate(answer.shares)
        if share.share >= SMALLEST_SHOWN
    ]
    columns = ("what", "of the time", "share", "where")
    return cells_table(
        "Shares of the time", columns, rows, figures=("of the time",), names=("where",)
    )
