"""A project's page on the package index, as releases with their wheels."""

from __future__ import annotations

import html.parser
import urllib.parse
from collections.abc import Iterable
from typing import NamedTuple

from packaging.tags import Tag
from packaging.utils import (
    canonicalize_name,
    parse_wheel_filename,
)
from packaging.version import Version

from whygpu.package_index.web import Web


class Wheel(NamedTuple):
    filename: str
    url: str
    version: Version
    tags: frozenset[Tag]
    requires_python: str


class PublishedRelease(NamedTuple):
    package: str
    version: Version
    wheels: tuple[Wheel, ...]


class _Links(html.parser.HTMLParser):
    """Every link of a simple page (PEP 503) that is not yanked."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self._base = base
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        href = attributes.get("href")
        if tag == "a" and href and "data-yanked" not in attributes:
            try:
                url = urllib.parse.urljoin(self._base, href).partition("#")[0]
            except ValueError:
                # It is no address.
                return
            self.found.append((url, attributes.get("data-requires-python") or ""))


def read_wheels(page: str, base: str) -> list[Wheel]:
    """The wheels that a page offers; names that are not a wheel's are passed over."""
    links = _Links(base)
    links.feed(page)
    wheels = []
    for url, requires_python in links.found:
        filename = urllib.parse.unquote(url.rpartition("/")[2])
        try:
            _, version, _, tags = parse_wheel_filename(filename)
        # InvalidWheelFilename is one; Python raises another for numbers of thousands of digits.
        except ValueError:
            continue
        wheels.append(Wheel(filename, url, version, tags, requires_python))
    return wheels


def final_releases(package: str, wheels: Iterable[Wheel]) -> tuple[PublishedRelease, ...]:
    """From old to new, without pre-releases; a release without a wheel has nothing to read."""
    by_version: dict[Version, list[Wheel]] = {}
    for wheel in wheels:
        if not wheel.version.is_prerelease and wheel.version.local is None:
            by_version.setdefault(wheel.version, []).append(wheel)
    return tuple(
        PublishedRelease(package, version, tuple(by_version[version]))
        for version in sorted(by_version)
    )


def published(web: Web, index: str, package: str) -> tuple[PublishedRelease, ...]:
    base = f"{index}/{canonicalize_name(package)}/"
    return final_releases(package, read_wheels(web.page(base), base))
