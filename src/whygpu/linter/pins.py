"""Which TensorFlow a project is for, according to its requirements or its README."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache

from whygpu.errors import UsageError
from whygpu.host.files import read_start
from whygpu.linter.project_files import kind_of
from whygpu.model.program import TensorFlowLine
from whygpu.model.requirement_file import PinnedRequirement
from whygpu.readers.deployment import dockerfile
from whygpu.readers.deployment.package_installs import package_installs
from whygpu.readers.requirement_files import read_requirements
from whygpu.tables.base_images import base_image

_FILES = re.compile(
    r"requirements[\w.-]{0,80}\.txt|setup\.(py|cfg)|pyproject\.toml|environment\.ya?ml|Pipfile"
    r"|Dockerfile[\w.-]{0,80}",
    re.IGNORECASE,
)
_PIN = re.compile(
    r"\btensorflow(?:[-_](?:gpu|cpu))?(?:\[[^\]]*\])?[\"']?\s*(?:[=~]=|:|=\s*[\"'])\s*[\"'^~=]*"
    r"\s*(\d+)(?:\.\d+|\b)",
    re.IGNORECASE,
)
"""A pin in a file that no reader reads."""
_PACKAGES = ("tensorflow", "tensorflow-gpu", "tensorflow-cpu", "tensorflow-serving-api")
"""Each release of the last one needs the same release of TensorFlow."""
_CLAUSE = re.compile(r"(===?|~=|<=?)\s*(\d+)([\d.*]*)\S*")
_NVIDIA_TAG = re.compile(r"\d\d\.\d\d-tf([12])|1[789]\.\d\d")
_README = re.compile(r"(README|INSTALL)[\w.-]*", re.IGNORECASE)
_SAID = re.compile(
    r"(?<![\w./-])(?:tensorflow|tf)(?:[-_ ]?(?:gpu|cpu))?[\s`*_\"'()\[\]:,-]{0,4}"
    r"(?:version|ver|v|r)?[\s`*_.:(]{0,3}(?:[<>=~\\]{1,3}|&[gl]t;=?|[≥≤])?\s?`?v?\.?"
    r"([012])(?:\.(?:\d+|x)|\b(?![.\d]))",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"/tensorflow[-:](?:gpu-)?([12])\.\d", re.IGNORECASE)
"""tensorflow/tensorflow:1.14.0-py3, kubeflow-images-public/tensorflow-1.15.2-notebook-gpu"""
_REFUSES_2 = re.compile(
    r"(?:tensorflow|tf)\W{0,3}2[^\n]{0,40}?(?:\bnot\b|n't\b|unsupported|incompatible)",
    re.IGNORECASE,
)
_NEAR = 3
"""How many folders above a program its own requirements are at most."""
_HIGHEST = 8
_LARGEST = 1 << 18


def forget() -> None:
    """Read the requirements again that were read before: they may have changed since."""
    for search in (tensorflow_pin, _search, tensorflow_hint, _search_hint):
        search.cache_clear()


@lru_cache(maxsize=4096)
def tensorflow_pin(folder: str) -> TensorFlowLine | None:
    """The version that the nearest requirements above a file pin, up to the repository root.

    A repository may hold the programs of others: requirements far above only suggest a version.
    """
    return _search(os.path.abspath(folder), _NEAR)


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
        for match in _said(_REFUSES_2.sub("", _text(os.path.join(folder, name))))
    }
    if majors:
        return _line(majors)
    parent = os.path.dirname(folder)
    if ".git" in entries or parent == folder or levels == 0:
        return None
    return _search_hint(parent, levels - 1)


def _said(text: str) -> Iterator[re.Match[str]]:
    yield from _SAID.finditer(text)
    yield from _IMAGE.finditer(text)


def _line(majors: set[int]) -> TensorFlowLine:
    return "1" if majors == {1} else "2" if majors == {2} else "either"


def _text(path: str) -> str:
    try:
        return read_start(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""


def _majors(path: str) -> set[int]:
    text = _text(path)
    if "tensorflow" not in text:
        return set()
    if kind_of(path) == "dockerfile":
        found = _majors_of_image(dockerfile.read(path, text))
    else:
        try:
            read = read_requirements(path, _text)
        except UsageError:
            # setup.py and its like have no reader.
            found = {int(match[1]) for match in _PIN.finditer(text)}
        else:
            found = {m for each in read.requirements for m in _majors_of(each)}
    return found & {1, 2}


def _majors_of_image(file: dockerfile.Dockerfile) -> set[int]:
    found: set[int] = set()
    for stage in file.stages:
        base = base_image(stage.base or "", stage.place)
        match = _NVIDIA_TAG.match(base.tag) if base.name.endswith("nvidia/tensorflow") else None
        if match is not None:
            # The images of 2017 to 2019 have TensorFlow 1; later images have it in the name.
            found.add(int(match[1] or 1))
        elif base.framework == "tensorflow" and base.version:
            found.add(int(base.version.partition(".")[0]))
        for run in stage.runs:
            for install in package_installs(run.commands):
                found.update(m for each in install.requirements for m in _majors_of(each))
    return found


def _majors_of(requirement: PinnedRequirement) -> Iterator[int]:
    """The major release that a requirement on TensorFlow leads to; none for a lower bound."""
    if requirement.name not in _PACKAGES:
        return
    for clause in filter(None, requirement.specifier.split(",")):
        match = _CLAUSE.fullmatch(clause.strip())
        if match is None:
            continue
        operator, major, rest = match.groups()
        # `<2` and `<2.0` are pins to 1.
        is_below = operator == "<" and not rest.strip(".0*")
        yield int(major) - 1 if is_below else int(major)
