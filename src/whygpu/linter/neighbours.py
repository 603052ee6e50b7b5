"""Which TensorFlow the neighbouring files are written for."""

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


_IMPORTED = re.compile(
    r"^[ \t]{0,40}(?:from[ \t]{1,9}([\w.]{1,200})[ \t]{1,9}import[ \t]{1,9}([\w*][\w, \t]{0,400})"
    r"|import[ \t]{1,9}([\w.][\w., \t]{0,400}))",
    re.MULTILINE,
)
_OF_FRAMEWORK = re.compile(r"(?:tensorflow|keras|tf_keras|torch|torchvision)\b")
_WORD = re.compile(r"\w+")
_HIGHEST = 3
"""How many folders above a file its project's programs may be, as for the pins."""


class _Votes(NamedTuple):
    for_1: frozenset[str]
    for_2: frozenset[str]
    used_by_2: frozenset[str]
    """The words of what the files for TensorFlow 2 import."""


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


def is_left_over(path: str, text: str) -> bool:
    """Whether a file for TensorFlow 1 is beside programs for 2, and none of them imports it.

    Such a file was left when the project moved on: what its requirements pin is not for it.
    """
    if _TWO.search(text) or not (_ONE.search(text) or _GRAPHS.search(text)):
        return False
    folder, name = os.path.split(os.path.abspath(path))
    module = name.removesuffix(".py")
    in_package = module in _words_of(os.path.join(folder, "__init__.py"))
    package, others = os.path.basename(folder), False
    for _ in range(_HIGHEST + 1):
        votes = _votes(folder)
        if module in votes.used_by_2 or (in_package and package in votes.used_by_2):
            return False
        others = others or bool(votes.for_2 - {name})
        folder = os.path.dirname(folder)
    return others


def _words_of(path: str) -> frozenset[str]:
    return frozenset(_WORD.findall(_text(path)))


def _is_for_1(text: str) -> bool:
    return bool(_ONE.search(text)) or len(_GRAPHS.findall(text)) >= _MANY_NAMES


@lru_cache(maxsize=1024)
def _votes(folder: str) -> _Votes:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".py"))
    except OSError:
        names = []
    ones, twos, used = set(), set(), set()
    for name in names[:_MOST_FILES]:
        text = _text(os.path.join(folder, name))
        if "import tensorflow" not in text and "from tensorflow" not in text:
            continue
        if _TWO.search(text):
            twos.add(name)
            for match in _IMPORTED.finditer(text):
                if not _OF_FRAMEWORK.match(match[1] or match[3]):
                    used.update(_WORD.findall(match[0]))
        elif _is_for_1(text):
            ones.add(name)
    return _Votes(frozenset(ones), frozenset(twos), frozenset(used))


def forget() -> None:
    """Read the folders again that were read before: they may have changed since."""
    _votes.cache_clear()


def _text(path: str) -> str:
    try:
        return read_start(path, _LARGEST).decode("utf-8", "replace")
    except OSError:
        return ""
