"""Reads what `whygpu snapshot` and `whygpu check --json` write. It may be damaged or hostile."""

from __future__ import annotations

from typing import Any

from whygpu.errors import UsageError
from whygpu.model.codec import DecodeError, decode, shown
from whygpu.model.observed import Known
from whygpu.model.outside_text import excerpt, one_line
from whygpu.model.snapshot import SCHEMA, Snapshot
from whygpu.readers import bounded_json
from whygpu.readers.unpacking import SNAPSHOT, Unpacked
from whygpu.version import VERSION

_LONGEST_MESSAGE = 500


def not_a_snapshot(path: str, why: object) -> UsageError:
    return UsageError(f"{path} is no snapshot: {why}; {SNAPSHOT.remedy}")


def read_snapshot(content: bytes, path: str) -> Snapshot:
    """The snapshot in the content of a file, which may be compressed; `path` is for the message if
    there is none."""
    if not content.strip():
        raise not_a_snapshot(path, "it is empty, or was still being written")
    unpacked = Unpacked([content], path, SNAPSHOT)
    content = b"".join(unpacked)
    if unpacked.unread:
        raise not_a_snapshot(path, unpacked.unread)
    try:
        data = bounded_json.loads(content)
    except ValueError as error:
        raise not_a_snapshot(path, _own_message(content) or error) from error
    if isinstance(data, dict) and "snapshot" in data and "verdict" in data:
        # The output of `check --json` holds the snapshot it was made from.
        data = data["snapshot"]
    if not isinstance(data, dict) or "schema" not in data:
        raise not_a_snapshot(path, "it is JSON of another kind")
    if data["schema"] != SCHEMA:
        raise UsageError(
            f"{path} is no snapshot that this version reads: expected schema {SCHEMA}, received "
            f"{shown(data['schema'])}; take it again with this version, or update whygpu"
        )
    try:
        return _each_framework_once(decode(Snapshot, data))
    except DecodeError as error:
        raise UsageError(f"{path} {_what_it_is(data)}: {error}") from error


def _each_framework_once(snapshot: Snapshot) -> Snapshot:
    """Causes look frameworks up by name; among thousands, that would take minutes."""
    found = snapshot.target.frameworks
    names = [each.name for each in found.value] if isinstance(found, Known) else []
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DecodeError("target.frameworks", "each framework once", twice)
    return snapshot


def _own_message(content: bytes) -> str:
    """What whygpu, or the shell about it, has said on a node instead of a snapshot.

    Nothing else is quoted: a link may lead to any file, also to one with passwords.
    """
    first = content[:_LONGEST_MESSAGE].decode("utf-8", "replace").strip().partition("\n")[0]
    if first.startswith("{") or "whygpu:" not in first:
        return ""
    return f"it holds a message: {excerpt(one_line(first))}"


def _what_it_is(data: dict[str, Any]) -> str:
    """Another version may have written what this one does not know."""
    version = data.get("whygpu")
    if version == VERSION or not isinstance(version, str):
        return "is a damaged snapshot"
    return (
        f"was written by whygpu {excerpt(one_line(version), 40)}, and this version, {VERSION}, "
        "cannot read it; update whygpu here, or take it again"
    )
