"""Reads what `whygpu snapshot` and `whygpu check --json` write. It may be damaged or hostile."""

from __future__ import annotations

from whygpu.errors import UsageError
from whygpu.model.codec import DecodeError, decode
from whygpu.model.outside_text import excerpt
from whygpu.model.snapshot import SCHEMA, Snapshot
from whygpu.readers import bounded_json

LARGEST_SNAPSHOT = 1 << 24
"""Bytes. With all probes and what they printed, a snapshot has less than 1 MiB."""


def not_a_snapshot(path: str, why: object) -> UsageError:
    return UsageError(f"{path} is no snapshot: {why}; `whygpu snapshot -o FILE` writes one")


def read_snapshot(content: bytes, path: str) -> Snapshot:
    """The snapshot in the content of a file; `path` is for the message if there is none."""
    try:
        data = bounded_json.loads(content)
    except ValueError as error:
        raise not_a_snapshot(path, error) from error
    if isinstance(data, dict) and "snapshot" in data and "verdict" in data:
        # The output of `check --json` holds the snapshot it was made from.
        data = data["snapshot"]
    found = data.get("schema") if isinstance(data, dict) else None
    if found != SCHEMA:
        raise UsageError(
            f"{path} is no snapshot that this version reads: expected schema {SCHEMA}, received "
            f"{excerpt(repr(found), 40)}; take it again with this version, or update whygpu"
        )
    try:
        return decode(Snapshot, data)
    except DecodeError as error:
        raise UsageError(f"{path} is a damaged snapshot: {error}") from error
