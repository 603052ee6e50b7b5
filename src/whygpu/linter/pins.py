"""Whether a project's own requirements say that it is for TensorFlow 1."""

from __future__ import annotations

import os
import re
from functools import lru_cache

from whygpu.model.program import TensorFlowLine

_FILES = re.compile(
    r"requirements[\w.-]*\.txt|setup\.(py|cfg)|pyproject\.toml|environment\.ya?ml|Pipfile"
    r"|Dockerfile[\w.-]*",
    re.IGNORECASE,
)
_PIN = re.compile(
    r"\btensorflow(?:[-_](?:gpu|cpu))?(?:\[[^\]]*\])?[\"']?\s*(?:[=~<]=?=?|:|=\s*[\"'])\s*[\"'^~=<]*"
    r"\s*(\d+)(?:\.\d+|\b)|tensorflow/tensorflow:(\d+)\.",
    re.IGNORECASE,
)
_HIGHEST = 8
_LARGEST = 1 << 18


@lru_cache(maxsize=4096)
def tensorflow_pin(folder: str) -> TensorFlowLine | None:
    """What the nearest requirements above a file pin, up to the top of its repository."""
    return _search(os.path.abspath(folder), _HIGHEST)


@lru_cache(maxsize=4096)
def _search(folder: str, levels: int) -> TensorFlowLine | None:
    try:
        entries = os.listdir(folder)
    except OSError:
        return None
    majors = set()
    for name in entries:
        if _FILES.fullmatch(name):
            majors |= _majors(os.path.join(folder, name))
    if majors:
        return "1" if majors == {1} else "2" if majors == {2} else "either"
    parent = os.path.dirname(folder)
    if ".git" in entries or parent == folder or levels == 0:
        return None
    return _search(parent, levels - 1)


def _majors(path: str) -> set[int]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(_LARGEST)
    except OSError:
        return set()
    found = set()
    for match in _PIN.finditer(text):
        number = int(match.group(1) or match.group(2))
        # `tensorflow<2` is a pin to 1.
        below = "<" in match.group(0) and "<=" not in match.group(0)
        found.add(number - 1 if below and "." not in match.group(0) else number)
    return found & {1, 2}
