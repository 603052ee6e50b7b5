"""The release table in use: the shipped one, or one that `whygpu plan --update` has saved."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from whygpu.errors import UsageError
from whygpu.host.files import read_whole
from whygpu.host.writing import write_file
from whygpu.model.install_plan import TableEdition, TableUpdate
from whygpu.model.release import Release
from whygpu.tables.releases import ReleaseTable, shipped

_LARGEST_BYTES = 8 << 20
"""The shipped table has 0.7 MB."""
_LARGEST_ANSWER = 32 << 20
_ATTEMPTS = 3
_TIMEOUT_SECONDS = 20.0


class CurrentTable(NamedTuple):
    table: ReleaseTable
    edition: TableEdition


def current_table() -> CurrentTable:
    """The newer of the shipped and the updated table; a damaged one is not used."""
    ours = shipped()
    edition = TableEdition(ours.date, "shipped")
    saved = _saved()
    if isinstance(saved, str):
        return CurrentTable(ours, edition._replace(unused=saved))
    if saved is None or saved.date < ours.date:
        return CurrentTable(ours, edition)
    return CurrentTable(saved, TableEdition(saved.date, "updated"))


def path(environ: Mapping[str, str]) -> str:
    """Where the updated table is: in the user's data folder."""
    base = environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "whygpu", "releases.json")


def _saved() -> ReleaseTable | str | None:
    """The updated table; None if there is none, or why it cannot be used."""
    place = path(os.environ)
    try:
        table = ReleaseTable(read_whole(place, _LARGEST_BYTES).decode("utf-8"))
        table.rows()
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{place} cannot be read: {error.strerror or error}"
    except (ValueError, RecursionError) as error:
        return f"{place} is damaged ({error}); `whygpu plan --update` writes it again"
    return table


def update_releases(progress: Callable[[str], None] = lambda text: None) -> TableUpdate:
    """Read the package index that pip is configured for, and save a new edition of the table.

    This is the only function of whygpu, apart from plan(verify=True), that uses the network. If the
    index cannot be read, or its answer is not sound, the table stays as it is and UsageError says
    why.
    """
    from whygpu.package_index.pip_settings import configured_index
    from whygpu.package_index.release_rows import PACKAGES, document
    from whygpu.package_index.update import updated_rows
    from whygpu.package_index.web import Unreadable, Web

    before = current_table()
    known = {(row.package, row.version): row for row in before.table.rows()}
    # The build of a release may have been read since: the shipped rows are the better ones.
    known.update({(row.package, row.version): row for row in shipped().rows()})
    index = configured_index()
    try:
        web = Web(
            None,
            index,
            attempts=_ATTEMPTS,
            timeout_seconds=_TIMEOUT_SECONDS,
            largest_answer=_LARGEST_ANSWER,
        )
        rows = updated_rows(web, index.url, known.values(), PACKAGES, progress)
    except Unreadable as error:
        raise _unchanged(before, f"{index.url} cannot be read: {error}") from error
    progress("checking the new table")
    _require_sound(rows, tuple(known.values()), before)
    date = time.strftime("%Y-%m-%d", time.gmtime())
    place = path(os.environ)
    try:
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        write_file(place, document(rows, date).encode("utf-8"))
    except OSError as error:
        raise _unchanged(before, f"cannot write {place}: {error.strerror or error}") from error
    return _difference(
        rows,
        before,
        TableUpdate(
            edition=TableEdition(date, "updated"),
            before=before.edition,
            index_url=index.url,
            path=place,
            new=(),
            gone=(),
            unread=(),
        ),
    )


def _require_sound(
    rows: tuple[Release, ...], known: tuple[Release, ...], before: CurrentTable
) -> None:
    from itertools import chain

    from whygpu.tables.release_checks import lost, problems

    wrong = next(chain(problems(rows), lost(known, rows)), None)
    if wrong is not None:
        raise _unchanged(before, f"the answer of the package index is not sound: {wrong}")


def _unchanged(before: CurrentTable, problem: str) -> UsageError:
    return UsageError(f"{problem}. The table of {before.edition.date} is still in use")


def _difference(
    rows: tuple[Release, ...], before: CurrentTable, update: TableUpdate
) -> TableUpdate:
    old = {f"{row.package} {row.version}" for row in before.table.rows()}
    now = {f"{row.package} {row.version}": row for row in rows}
    return update._replace(
        new=tuple(name for name in now if name not in old),
        gone=tuple(sorted(old - now.keys())),
        unread=tuple(name for name, row in now.items() if row.unread),
    )
