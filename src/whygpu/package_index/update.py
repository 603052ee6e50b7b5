"""A new edition of the release table, from the pages and metadata of the package index.

Releases that the table has keep what was read from their wheels; the pages show which Pythons and
platforms they have wheels for now. Of a new release, only the page and METADATA are read. These do
not say which CUDA release it was built for and which GPU code it has, and nothing is guessed:
`Release.unread` says so.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from packaging.requirements import Requirement
from packaging.version import Version

from whygpu.model.release import Release
from whygpu.package_index.project_page import PublishedRelease, published
from whygpu.package_index.release_rows import (
    BuildFacts,
    BuildReader,
    nvidia_packages,
    page_row,
    row_of,
)
from whygpu.package_index.remote_wheel import RemoteWheel
from whygpu.package_index.web import CONNECTIONS, NotThere, Unreadable, Web

UNREAD = "the package index does not say which CUDA release and which GPUs it is built for"
_BUILDS = frozenset(
    (
        "tensorflow",
        "tensorflow-gpu",
        "torch",
        "onnxruntime-gpu",
        "jax-cuda11-plugin",
        "jax-cuda12-plugin",
        "jax-cuda13-plugin",
    )
)
"""Packages with GPU code; only their wheels show how it was built."""

Progress = Callable[[str], None]
T = TypeVar("T")
U = TypeVar("U")


def updated_rows(
    web: Web,
    index: str,
    known: Iterable[Release],
    packages: Sequence[str],
    progress: Progress,
) -> tuple[Release, ...]:
    """Every row of the new edition, in order. Raises Unreadable if any page cannot be read."""
    before = {(row.package, row.version): row for row in known}
    have_rows = {package for package, _ in before}

    def read(packages: Sequence[str], what: str) -> list[Release]:
        pages = _all(
            lambda package: _page(web, index, package, have_rows),
            packages,
            lambda done: progress(f"{what}: {done} of {len(packages)}"),
        )
        found = [release for page in pages for release in page]
        new = [item for item in found if (item.package, str(item.version)) not in before]
        read_rows = _all(
            lambda release: row_of(web, release, _reader_of),
            new,
            lambda done: progress(f"{what}, new releases: {done} of {len(new)}"),
        )
        rows = {(row.package, row.version): row for row in read_rows}
        return [
            rows.get(key) or _refreshed(before[key], release)
            for release in found
            for key in [(release.package, str(release.version))]
        ]

    frameworks = read(packages, "reading the pages of the frameworks")
    rest = read(nvidia_packages(frameworks), "reading the pages of NVIDIA's packages")
    return tuple(sorted((*frameworks, *rest), key=lambda row: (row.package, Version(row.version))))


def _page(web: Web, index: str, package: str, have_rows: set[str]) -> tuple[PublishedRelease, ...]:
    """A package that never had a release may have no page: some requirements name such ones."""
    try:
        return published(web, index, package)
    except NotThere:
        if package in have_rows:
            raise
        return ()


def _reader_of(package: str) -> BuildReader | None:
    return _not_read if package in _BUILDS else None


def _not_read(
    wheel: RemoteWheel, version: str, requirements: tuple[Requirement, ...]
) -> BuildFacts:
    return BuildFacts(unread=UNREAD)


def _refreshed(row: Release, release: PublishedRelease) -> Release:
    """A known row with what the page says now: projects add wheels for new Pythons."""
    page = page_row(release)
    return row._replace(
        pythons=page.pythons,
        platforms=page.platforms,
        glibc=page.glibc,
        requires_python=page.requires_python or row.requires_python,
    )


def _all(work: Callable[[T], U], items: Sequence[T], on_done: Callable[[int], None]) -> list[U]:
    """The results, in order, of several threads; the first failure ends the work.

    The threads are daemons, so that Ctrl-C ends the process without waiting for a slow server.
    """
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[int, Any, Exception | None]] = queue.SimpleQueue()
    for place in range(len(items)):
        waiting.put(place)

    def run() -> None:
        while True:
            try:
                place = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((place, work(items[place]), None))
            except Exception as error:
                done.put((place, None, error))
                return

    for _ in range(min(CONNECTIONS, len(items))):
        threading.Thread(target=run, daemon=True).start()
    results: dict[int, U] = {}
    while len(results) < len(items):
        place, result, error = done.get()
        if isinstance(error, (ValueError, RecursionError)):
            raise Unreadable(f"{items[place]}: {error}") from error
        if error is not None:
            raise error
        results[place] = result
        on_done(len(results))
    return [results[place] for place in range(len(items))]
