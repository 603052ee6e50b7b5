"""Reads environment.yml, the file from which conda creates an environment.

It reads only the part of YAML that these files use: keys, lists of plain or quoted texts, and the
list of pip inside. A line of another kind is reported, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.errors import UsageError
from whygpu.model.requirement_file import (
    FileLine,
    PackageSource,
    PinnedRequirement,
    RequirementsFile,
    SourceRole,
    UnreadLine,
)
from whygpu.readers.requirement_files import Load
from whygpu.readers.requirement_files.pip_requirement import normalised, pip_requirement

_COMMENT = re.compile(r"(^|\s)#.*")
_TOP_KEY = re.compile(r"^([\w-]+):\s*(.*)")
_SHORT_LIST = re.compile(r"\[([\w./: ,\"'-]*)\]")
_ITEM = re.compile(r"^(\s*)-\s+(.*)")
_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*")
_FIELD = re.compile(r"""\b(version|build|channel)\s*=\s*(\"[^\"]*\"|'[^']*'|[^,\]]+)""")
_RANGE = re.compile(r"[<>!~]")
_VERSION = re.compile(r"^(==|!=|<=|>=|<|>|~=|=)?\s*(\d[\w.]*\*?|\*)")
_PIP_OPTIONS: dict[str, SourceRole] = {
    "--index-url": "index",
    "-i": "index",
    "--extra-index-url": "extra",
    "--find-links": "find-links",
    "-f": "find-links",
}


def read(path: str, load: Load) -> RequirementsFile:
    requirements, unread = list[PinnedRequirement](), list[UnreadLine]()
    sources, channels = list[PackageSource](), list[str]()
    python = ""
    has_dependencies = False
    for section, text, is_pip, place in _items(path, load(path)):
        if section == "channels":
            channels.append(text)
            continue
        if section != "dependencies":
            continue
        has_dependencies = True
        option = re.fullmatch(r"(--?[\w-]+)[=\s]\s*(\S+)", text) if is_pip else None
        if option is not None and option[1] in _PIP_OPTIONS:
            sources.append(PackageSource(option[2], _PIP_OPTIONS[option[1]], place))
            continue
        found = pip_requirement(text, place) if is_pip else conda_requirement(text, place)
        if isinstance(found, UnreadLine):
            unread.append(found)
        elif found.name == "python" and found.manager == "conda":
            python = found.specifier
        else:
            requirements.append(found)
    if not has_dependencies:
        raise UsageError(f"{path}: it is not an environment of conda: it has no `dependencies`")
    return RequirementsFile(
        path,
        "environment.yml",
        tuple(
            item._replace(sources=tuple(sources))
            if item.manager == "pip"
            else item._replace(channel=item.channel or (channels[0] if channels else ""))
            for item in requirements
        ),
        requires_python=python,
        unread=tuple(unread),
    )


def _items(path: str, text: str) -> Iterator[tuple[str, str, bool, FileLine]]:
    """The items of the lists: their section, their text, whether they are for pip, their line."""
    section, pip_indent = "", -1
    for number, raw in enumerate(text.splitlines(), 1):
        line = _COMMENT.sub("", raw).rstrip()
        if not line or line == "---":
            continue
        place = FileLine(path, number, raw.strip())
        top, item = _TOP_KEY.fullmatch(line), _ITEM.fullmatch(line)
        if top is not None:
            section, pip_indent = top[1], -1
            if section == "channels" and (listed := _SHORT_LIST.fullmatch(top[2])) is not None:
                for value in listed[1].split(","):
                    yield section, _unquoted(value.strip()), False, place
            elif section in ("dependencies", "channels") and top[2]:
                raise UsageError(
                    f"{path}:{number}: whygpu reads lists with one item on each line, not this one"
                )
        elif item is not None:
            indent, value = len(item[1]), _unquoted(item[2].strip())
            if value == "pip:":
                pip_indent = indent
                continue
            if indent <= pip_indent:
                pip_indent = -1
            yield section, value, pip_indent >= 0, place
        elif section in ("dependencies", "channels"):
            raise UsageError(f"{path}:{number}: whygpu does not read this kind of YAML")


def _unquoted(text: str) -> str:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text


def conda_requirement(text: str, place: FileLine) -> PinnedRequirement | UnreadLine:
    """A specification such as conda-forge::pytorch=2.1.*=*cuda*."""
    text, _, fields = text.partition("[")
    given = {key: _unquoted(value.strip()) for key, value in _FIELD.findall(fields)}
    channel, _, rest = text.rpartition("::")
    name = _NAME.match(rest.strip())
    if name is None:
        return UnreadLine(place, "it is not a package as conda writes it")
    version, build = _version_and_build(rest.strip()[name.end() :].strip())
    version, build = given.get("version", version), given.get("build", build)
    specifier = _specifier(version)
    if specifier is None:
        return UnreadLine(place, f"the range {version!r} was not understood")
    return PinnedRequirement(
        name=normalised(name.group()),
        extras=(),
        specifier=specifier,
        marker="",
        place=place,
        manager="conda",
        build=build,
        channel=channel or given.get("channel", ""),
    )


def _version_and_build(text: str) -> tuple[str, str]:
    """What follows the name: "=2.1=*cuda*", "==2.1", ">=2,<3", or "2.1.* *cuda*"."""
    if not text or _RANGE.match(text):
        return text.replace(" ", ""), ""
    if text.startswith("="):
        exact = text.startswith("==")
        version, _, build = text.lstrip("=").partition("=")
        return ("==" if exact else "=") + version.strip(), build.strip()
    version, _, build = text.partition(" ")
    return f"={version}", build.strip()


def _specifier(text: str) -> str | None:
    """The range in pip's notation: =2.1 of conda means 2.1.*; None if it was not understood."""
    parts = []
    for part in filter(None, text.split(",")):
        match = _VERSION.fullmatch(part.strip())
        if match is None:
            return None
        operator, version = match[1] or "=", match[2]
        if version == "*":
            continue
        if operator == "=":
            version = version if version.endswith("*") else f"{version}.*"
            version = version if version.endswith(".*") else f"{version[:-1].rstrip('.')}.*"
            operator = "=="
        elif version.endswith("*"):
            version = version[:-1].rstrip(".")
            version = f"{version}.*" if operator in ("==", "!=") else version
        parts.append(f"{operator}{version}")
    return ",".join(parts)
