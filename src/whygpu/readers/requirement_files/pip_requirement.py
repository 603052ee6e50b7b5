"""One requirement as pip writes it, with its place in a file."""

from __future__ import annotations

import re
import urllib.parse

from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from whygpu.model.requirement_file import FileLine, PinnedRequirement, UnreadLine

_SEPARATORS = re.compile(r"[-_.]+")


def normalised(name: str) -> str:
    return _SEPARATORS.sub("-", name).lower()


def pip_requirement(text: str, place: FileLine, group: str = "") -> PinnedRequirement | UnreadLine:
    """A requirement (PEP 508), or the address of a wheel."""
    wheel = wheel_of(text)
    if wheel is not None:
        name, version = wheel
        return PinnedRequirement(name, (), f"=={version}", "", place, url=text, group=group)
    try:
        parsed = Requirement(text)
        specifier = str(parsed.specifier)
    # InvalidRequirement is one; Python raises another for numbers of thousands of digits.
    except (ValueError, RecursionError):
        return UnreadLine(place, "it is not a requirement as pip writes it")
    url = parsed.url or ""
    named = wheel_of(url) if url else None
    return PinnedRequirement(
        name=normalised(parsed.name),
        extras=tuple(sorted(normalised(extra) for extra in parsed.extras)),
        specifier=f"=={named[1]}" if named else specifier,
        marker=str(parsed.marker or ""),
        place=place,
        url=url,
        group=group,
    )


def wheel_of(address: str) -> tuple[str, str] | None:
    """The name and version of a wheel, by its address or path; None if it is not one."""
    path = address.partition("#")[0].partition("?")[0]
    filename = urllib.parse.unquote(path.rpartition("/")[2])
    if not filename.endswith(".whl") or " " in filename:
        return None
    try:
        name, version, _, _ = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return None
    return str(name), str(version)
