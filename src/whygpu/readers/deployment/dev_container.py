"""Reads devcontainer.json: the image of a development container, and the GPUs that it asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from whygpu.model.deployment import Grant
from whygpu.model.requirement_file import FileLine

_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


class DevContainer(NamedTuple):
    place: FileLine
    image: str
    dockerfile: str
    context: str
    target: str
    name: str
    """As its users see it."""
    arguments: tuple[tuple[str, str], ...]
    """Arguments of the build, with their values."""
    grants: tuple[Grant, ...]
    is_composed: bool
    """A compose file describes the container."""


def read(path: str, content: str) -> DevContainer:
    """Raises ValueError if it is not JSON with comments."""
    data = _parsed(content)
    given = data.get("build")
    build = given if isinstance(given, dict) else {}
    listed = data.get("runArgs")
    arguments = [str(word) for word in listed] if isinstance(listed, list) else []
    grants = []
    joined = " ".join(arguments)
    if re.search(
        r"--gpus|--runtime[= ]nvidia|nvidia\.com/gpu|/dev/(?:nvidia|dri)|--privileged", joined
    ):
        grants.append(Grant("runArgs", _line(path, content, "runArgs")))
    needs = data.get("hostRequirements")
    if isinstance(needs, dict) and needs.get("gpu") not in (None, False):
        grants.append(Grant("hostRequirements.gpu", _line(path, content, "hostRequirements")))
    image = str(data.get("image") or "")
    return DevContainer(
        _line(path, content, "image" if image else "build" if build else "dockerFile"),
        image,
        str(build.get("dockerfile") or data.get("dockerFile") or ""),
        str(build.get("context") or data.get("context") or "."),
        str(build.get("target") or ""),
        str(data.get("name") or ""),
        tuple(_arguments(build.get("args"))),
        tuple(grants),
        "dockerComposeFile" in data,
    )


def _arguments(given: object) -> Iterator[tuple[str, str]]:
    """Without those that take a variable of the machine."""
    for name, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, str) and "$" not in value:
            yield str(name), value


def compose_files(content: str) -> tuple[str, ...]:
    """The compose files that describe the container together, relative to its file."""
    try:
        given = _parsed(content).get("dockerComposeFile")
    except (ValueError, RecursionError):
        return ()
    listed = given if isinstance(given, list) else [given]
    return tuple(each for each in listed if isinstance(each, str))


def _parsed(content: str) -> dict[str, Any]:
    plain = _STRING_OR_COMMENT.sub(_without_comment, content)
    data = json.loads(_TRAILING_COMMA.sub(r"\1", plain))
    if not isinstance(data, dict):
        raise ValueError("it is not an object")
    return data


def _without_comment(match: re.Match[str]) -> str:
    word: str = match[0]
    return word if word.startswith('"') else "\n" * word.count("\n")


def _line(path: str, content: str, key: str) -> FileLine:
    for number, line in enumerate(content.split("\n"), 1):
        if f'"{key}"' in line:
            return FileLine(path, number, line.strip())
    return FileLine(path, 1, content.split("\n", 1)[0].strip())
