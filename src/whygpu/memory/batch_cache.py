"""Batch sizes that were found before, in the user's cache folder.

An entry holds for one step (its file's content and all that it imports from beside it), one set
of options, one machine (GPUs, driver) and one set of framework versions. It is used where there
is about as much memory as there was then.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from whygpu.host.files import open_regular, read_whole
from whygpu.host.writing import write_file
from whygpu.memory.trial_outcome import Limits
from whygpu.model.batch import BatchResult
from whygpu.model.codec import DecodeError, decode, encode
from whygpu.model.observed import Known

if TYPE_CHECKING:
    from whygpu.memory.find import Wanted
    from whygpu.model.snapshot import Snapshot

SCHEMA = 1
_KEPT = ("found", "at-largest")
_ABOUT = 0.05
_LARGEST = 1 << 20
"""Bytes of an entry; a search of many trials takes about ten thousand."""
_VARIABLES = ("KERAS_", "XLA_", "TF_", "JAX_", "PYTORCH_", "TORCH", "CUDA_", "CUBLAS_", "OMP_")
"""Prefixes of variables that change how much memory a framework takes."""


def folder(environ: Mapping[str, str]) -> str:
    base = environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "whygpu", "batch")


def key_of(wanted: Wanted, machine: Snapshot, environ: Mapping[str, str]) -> str | None:
    """The entry's file; None for a step that cannot be recognised later."""
    digest = digest_of(wanted.what.path) if wanted.what is not None else None
    if digest is None:
        return None
    settings = wanted._replace(
        what=None, name="", margin=0.0, timeout=0.0, cache=True, search_path=()
    )
    parts: dict[str, Any] = {
        "schema": SCHEMA,
        "what": wanted.what,
        "content": digest,
        "settings": settings,
        "frameworks": _frameworks(machine),
        "gpus": _gpus(machine),
        "driver": machine.driver.version,
        "variables": sorted(item for item in environ.items() if item[0].startswith(_VARIABLES)),
    }
    text = json.dumps({name: encode(part) for name, part in parts.items()}, sort_keys=True)
    name = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    return os.path.join(folder(environ), f"{name[:32]}.json")


def _frameworks(machine: Snapshot) -> tuple[tuple[str, str], ...]:
    frameworks = machine.target.frameworks
    if not isinstance(frameworks, Known):
        return ()
    return tuple((each.distribution, each.version) for each in frameworks.value)


def _gpus(machine: Snapshot) -> tuple[Any, ...]:
    gpus = machine.driver.gpus
    if not isinstance(gpus, Known):
        return ()
    return tuple((each.name, each.memory_total_bytes) for each in gpus.value)


def digest_of(path: str) -> str | None:
    digest = hashlib.sha256()
    try:
        with open(path, "rb", opener=open_regular) as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    except OSError:
        return None
    return digest.hexdigest()


def load(path: str, limits: Limits) -> BatchResult | None:
    """The stored answer, if there is a readable one that still holds."""
    try:
        entry = json.loads(read_whole(path, _LARGEST))
        result = decode(BatchResult, entry["result"])
        then = decode(Limits, entry["limits"])
        sources = dict(entry["sources"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, DecodeError):
        return None
    if any(digest_of(source) != digest for source, digest in sources.items()):
        return None
    if result.limit is not None and not _alike(result, then, limits):
        return None
    return result._replace(cached=True)


def _alike(result: BatchResult, then: Limits, now: Limits) -> bool:
    assert result.limit is not None
    name = "address_space" if result.limit.name == "address-space" else result.limit.name
    before, after = getattr(then, name), getattr(now, name)
    if before is None or after is None:
        return bool(before is after)
    return bool(abs(after - before) <= _ABOUT * before)


def save(path: str, limits: Limits, result: BatchResult, sources: Sequence[str]) -> None:
    """Store an answer. If that fails, the search is done again the next time."""
    digests = {source: digest_of(source) for source in sources}
    if result.outcome not in _KEPT or None in digests.values():
        return
    entry = {"result": encode(result), "limits": encode(limits), "sources": digests}
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_file(path, json.dumps(entry).encode())
