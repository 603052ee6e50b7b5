"""Which TensorFlow a project is for, according to its requirements or its README."""

from __future__ import annotations

import os
import re
from functools import lru_cache

from whygpu.host.files import read_start
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
_NVIDIA_IMAGE = re.compile(r"nvidia/tensorflow:(?:\d\d\.\d\d-tf([12])|1[789]\.\d\d)")
_README = re.compile(r"(README|INSTALL)[\w.-]*", re.IGNORECASE)
_SAID = re.compile(
    r"(?<![\w./-])(?:tensorflow|tf)(?:[-_ ]?(?:gpu|cpu))?[\s`*_\"'()\[\]:,-]{0,4}"
    r"(?:version|ver|v|r)?[\s`*_.:(]{0,3}(?:[<>=~\\]{1,3}|&[gl]t;=?|[≥≤])?\s?`?v?\.?"
    r"([012])(?:\.(?:\d+|x)|\b(?![.\d]))",
    re.IGNORECASE,
)
_REFUSES_2 = re.compile(
    r"(?:tensorflow|tf)\W{0,3}2[^\n]{0,40}?(?:\bnot\b|n't\b|unsupported|incompatible)",
    re.IGNORECASE,
)
_HIGHEST = 8
_LARGEST = 1 << 18


@lru_cache(maxsize=4096)
def tensorflow_pin(folder: str) -> TensorFlowLine | None:
    """The version that the nearest requirements above a file pin, up to the repository root."""
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
        return _line(majors)
    parent = os.path.dirname(folder)
    if ".git" in entries or parent == folder or levels == 0:
        return None
    return _search(parent, levels - 1)


@lru_cache(maxsize=4096)
def tensorflow_hint(folder: str) -> TensorFlowLine | None:
    """The version in the nearest README or lower bound that names TensorFlow.

    This is not a pin, but it suggests the version for a file that does not show it itself.
    """
    return _search_hint(os.path.abspath(folder), _HIGHEST)


@lru_cache(maxsize=4096)
def _search_hint(folder: str, levels: int) -> TensorFlowLine | None:
    try:
        entries = os.listdir(folder)
    except OSError:
        return None
    majors = {
        # For this purpose, TensorFlow 0.12 is a TensorFlow 1.
        max(int(match.group(1)), 1)
        for name in entries
        if _README.fullmatch(name) or _FILES.fullmatch(name)
        for match in _SAID.finditer(_REFUSES_2.sub("", _text(os.path.join(folder, name))))
    }
    if majors:
        return _line(majors)
    parent = os.path.dirname(folder)
    if ".git" in entries or parent == folder or levels == 0:
        return None
    return _search_hint(parent, levels - 1)


def _line(majors: set[int]) -> TensorFlowLine:
    return "1" if majors == {1} else "2" if majors == {2} else "either"


def _text(path: str) -> str:
    try:
        return read_start(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _majors(path: str) -> set[int]:
    text = _text(path)
    found = set()
    for match in _PIN.finditer(text):
        number = int(match.group(1) or match.group(2))
        # `tensorflow<2` is a pin to 1.
        below = "<" in match.group(0) and "<=" not in match.group(0)
        found.add(number - 1 if below and "." not in match.group(0) else number)
    for match in _NVIDIA_IMAGE.finditer(text):
        # The images of 2017 to 2019 have TensorFlow 1; later images have the version in the name.
        found.add(int(match.group(1)) if match.group(1) else 1)
    return found & {1, 2}
