"""Which TensorFlow the neighbouring files are written for, if nothing else shows it."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import NamedTuple

from whygpu.host.files import read_start

_ONE = re.compile(
    r"^from __future__ import [^\n]*(?:absolute_import|print_function|division)"
    r"|\btf\.contrib\.|\btensorflow\.contrib\b",
    re.MULTILINE,
)
_GRAPHS = re.compile(
    r"\btf\.(?:placeholder|Session|get_variable|variable_scope|global_variables|ConfigProto"
    r"|app\.|flags\.|logging\.|layers\.|gfile\.)"
)
_TWO = re.compile(r"\btf\.(?:function\b|GradientTape|config\.)|\bcompat\.v[12]\b|_v2_behavior\b")
_MANY_NAMES = 10
_ENOUGH = 2
_MOST_FILES = 60
_LARGEST = 1 << 16


class _Votes(NamedTuple):
    for_1: frozenset[str]
    for_2: frozenset[str]


def all_for_1(path: str) -> bool:
    """Whether two or more files in its folder or one folder up are for TensorFlow 1, none for 2."""
    folder, name = os.path.split(os.path.abspath(path))
    for place in (folder, os.path.dirname(folder)):
        votes = _votes(place)
        if votes.for_2 - {name}:
            return False
        if len(votes.for_1 - {name}) >= _ENOUGH:
            return True
    return False


@lru_cache(maxsize=1024)
def _votes(folder: str) -> _Votes:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    except OSError:
        names = []
    ones, twos = set(), set()
    for name in names[:_MOST_FILES]:
        text = _text(os.path.join(folder, name))
        if "import tensorflow" not in text and "from tensorflow" not in text:
            continue
        if _TWO.search(text):
            twos.add(name)
        elif _ONE.search(text) or len(_GRAPHS.findall(text)) >= _MANY_NAMES:
            ones.add(name)
    return _Votes(frozenset(ones), frozenset(twos))


def forget() -> None:
    """Read the folders again that were read before: they may have changed since."""
    _votes.cache_clear()


def _text(path: str) -> str:
    try:
        return read_start(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
