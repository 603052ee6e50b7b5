"""python -m tools.harvest: read the package index and write the release table."""

from __future__ import annotations

import argparse
import concurrent.futures
import datetime
import pathlib
import sys
from collections.abc import Iterable
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tools.harvest.build_facts import reader_of
from whygpu.model.release import Release
from whygpu.package_index.pip_settings import configured_index
from whygpu.package_index.project_page import PublishedRelease, published
from whygpu.package_index.release_rows import PACKAGES, document, nvidia_packages, row_of
from whygpu.package_index.web import CONNECTIONS, Unreadable, Web
from whygpu.tables.releases import DATA, read

_CACHE = pathlib.Path.home() / ".cache" / "whygpu-harvest"


class Harvest(NamedTuple):
    rows: list[Release]
    failures: dict[tuple[str, str], str]
    """Why a release (package and version) could not be read."""


def main(words: list[str] | None = None) -> int:
    options = _options(words)
    console = Console(stderr=True)
    index = configured_index()
    web = Web(options.cache, index)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    try:
        with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
            harvest = _harvest(web, index.url, options.packages, progress)
    except KeyboardInterrupt:
        console.print("Stopped. What was read is kept: the next run goes on from there.")
        return 130
    for (package, version), reason in harvest.failures.items():
        console.print(f"[yellow]not read:[/] {package} {version}: {reason}", highlight=False)
    kept = _kept(options.output, harvest)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    options.output.write_text(document([*kept, *harvest.rows], today), encoding="utf-8")
    console.print(
        f"{len(harvest.rows)} releases read, {len(kept)} kept as they were; "
        f"{web.requests} requests, {web.bytes_read / 1e6:.0f} MB"
    )
    return 1 if harvest.failures else 0


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.harvest", description=__doc__)
    parser.add_argument(
        "--packages",
        type=lambda text: tuple(text.split(",")),
        default=PACKAGES,
        help="read only these, with what they require of NVIDIA's; other rows stay as they are",
    )
    parser.add_argument("--cache", type=pathlib.Path, default=_CACHE, help="default: %(default)s")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path(DATA))
    return parser.parse_args(words)


def _kept(path: pathlib.Path, harvest: Harvest) -> list[Release]:
    """Rows of packages that were not asked for, and of releases that could not be read now."""
    standing = read(str(path)).rows() if path.is_file() else ()
    packages = {row.package for row in harvest.rows}
    return [
        row
        for row in standing
        if row.package not in packages or (row.package, row.version) in harvest.failures
    ]


def _harvest(web: Web, index: str, packages: Iterable[str], progress: Progress) -> Harvest:
    first = _read(web, index, packages, progress, "frameworks")
    then = _read(web, index, nvidia_packages(first.rows), progress, "NVIDIA's packages")
    return Harvest([*first.rows, *then.rows], {**first.failures, **then.failures})


def _read(web: Web, index: str, packages: Iterable[str], progress: Progress, what: str) -> Harvest:
    harvest = Harvest([], {})
    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        try:
            pages = pool.map(lambda package: _published(web, index, package), packages)
            found = [release for page in pages for release in page]
            futures = {pool.submit(row_of, web, release, reader_of): release for release in found}
            task = progress.add_task(what, total=len(futures))
            for future in concurrent.futures.as_completed(futures):
                release = futures[future]
                progress.update(task, advance=1, description=f"{what}: {release.package}")
                try:
                    harvest.rows.append(future.result())
                except (Unreadable, ValueError) as problem:
                    harvest.failures[release.package, str(release.version)] = str(problem)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return harvest


def _published(web: Web, index: str, package: str) -> tuple[PublishedRelease, ...]:
    try:
        return published(web, index, package)
    except Unreadable as problem:
        raise SystemExit(f"no page for {package}: {problem}") from problem


if __name__ == "__main__":
    sys.exit(main())
