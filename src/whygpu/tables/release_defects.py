"""Framework releases that cannot find their own CUDA wheels, as they were published."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.release import Release
from whygpu.tables.releases import versions_of


class SearchListDefect(NamedTuple):
    """A release whose RUNPATH does not contain folders of its own wheels."""

    framework: str
    version: str
    libraries: tuple[str, ...]
    """As in lib<library>.so."""
    good_release: str
    """The nearest release without the defect."""
    source: str
    """The wheel that shows it."""


def search_list_defect(framework: str, version: str) -> SearchListDefect | None:
    """The known defect of a release; None if there is none."""
    rows = versions_of(framework)
    place = next((i for i, row in enumerate(rows) if row.version == version), None)
    if place is None or not rows[place].unsearched:
        return None
    bad = rows[place]
    return SearchListDefect(
        framework, version, bad.unsearched, _nearest_sound(rows, place), bad.file
    )


def _nearest_sound(rows: tuple[Release, ...], place: int) -> str:
    """A later release for the same CUDA, in which the defect is fixed, if there is one."""
    later = [row for row in rows[place + 1 :] if row.cuda == rows[place].cuda]
    earlier = rows[:place][::-1]
    return next(row.version for row in (*later, *earlier) if not row.unsearched)
