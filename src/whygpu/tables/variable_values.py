"""What a value of an environment variable means, for readings that need nothing of the machine."""

from __future__ import annotations

import re
from collections.abc import Container

from whygpu.model.lazy_regex import late
from whygpu.tables.variable_readings import GpuList, Members, Number, Pairs, Reading, Text, Words
from whygpu.tables.variables import ROWS, row_of

Judgement = tuple[str, str]
"""The meaning of the value, and its problem; empty if it has none."""

_NAMES_NO_GPU = late(r"/?(?:job:|device:)?(?:cuda|gpu)(?::?\d+)?|all|auto|\d+\.\d+", re.IGNORECASE)
"""Words for GPUs that CUDA does not read: cuda:0, gpu0, all."""
_OTHER_NAMES = ("TF_CPP_MIN_VLOG_LEVEL",)
"""Names that exist and look like a misspelt one."""
_SHORTEST_NAME = 12
"""Shorter names are too close to names of other programs."""


def judged_value(reading: Reading, value: str, others: Container[str] = ()) -> Judgement | None:
    """None if the machine decides. `others`: the variables that are also set."""
    if isinstance(reading, Text):
        return reading.meaning, ""
    if isinstance(reading, Words):
        return _words(reading, value)
    if isinstance(reading, Number):
        return _number(reading, value, others)
    if isinstance(reading, Pairs):
        return _pairs(reading, value)
    return _members(reading, value) if isinstance(reading, Members) else None


def _words(reading: Words, value: str) -> Judgement:
    word = value.lower() if reading.any_case else value
    for words, meaning in reading.meanings:
        if word in words.split():
            return meaning, ""
    if value == "" and reading.empty_is_unset:
        return "empty, as if it were not set", ""
    if not reading.otherwise:
        return "no known effect", ""
    return "a value without a meaning here", f"{value!r}: {reading.otherwise}"


def _number(reading: Number, value: str, others: Container[str]) -> Judgement:
    meaning = reading.meaning.format(value=value)
    if reading.clashes_with in others:
        return meaning, f"it is set together with {reading.clashes_with}, which is an error"
    try:
        number = float(value)
    except ValueError:
        return "no number", f"{value!r}: {reading.otherwise}"
    unlimited = reading.unlimited_with in others
    if number < reading.low or (number > reading.high and not unlimited):
        return meaning, f"{value}: {reading.otherwise}"
    return meaning, ""


def _pairs(reading: Pairs, value: str) -> Judgement:
    # Commas inside brackets belong to one value: roundup_power2_divisions:[256:1,512:2].
    items = re.sub(r"\[[^\]]*\]", "[]", value).split(",")
    wrong = [item for item in items if item.strip() and ":" not in item]
    return reading.meaning, f"{wrong[0]!r} is not key:value: {reading.otherwise}" if wrong else ""


def _members(reading: Members, value: str) -> Judgement:
    meaning = dict(reading.alone).get(value.strip(), reading.meaning)
    members = {word.strip() for word in value.split(",")}
    lacking = bool(reading.required and value and not members & set(reading.required))
    return meaning, f"{value}: {reading.otherwise}" if lacking else ""


def value_problem(name: str, value: str, others: Container[str] = ()) -> str:
    """Why a value that is written in a file has no effect anywhere; empty if it may have one."""
    row = row_of(name)
    if row is None or name == "KERAS_BACKEND":
        # A file may be for an old Keras, which had other backends.
        return ""
    if isinstance(row.reading, GpuList):
        entries = [entry.strip() for entry in value.split(",")]
        wrong = next((entry for entry in entries if _NAMES_NO_GPU.fullmatch(entry)), None)
        if wrong is None:
            return ""
        return f"{wrong!r} is not a GPU: CUDA reads numbers and UUIDs, and ignores the rest"
    judged = judged_value(row.reading, value, others)
    return "" if judged is None else judged[1]


def meant_name(name: str) -> str:
    """The variable that a misspelt name stands for; empty if the name is right or not known."""
    if name in _KNOWN or name in _OTHER_NAMES or len(name) < _SHORTEST_NAME:
        return ""
    plain = re.sub(r"[\s-]+", "_", name.strip()).upper()
    if plain in _KNOWN:
        return plain
    near = [known for known in _KNOWN if _one_slip_apart(plain, known)]
    return near[0] if len(near) == 1 else ""


def _one_slip_apart(one: str, other: str) -> bool:
    """Whether one letter is missing, added, wrong, or swapped with the next."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    here, there = one[start:], other[start:]
    swapped = len(here) > 1 and here[1] + here[0] + here[2:] == there
    return here[1:] == there[1:] or here[1:] == there or here == there[1:] or swapped


_KNOWN = frozenset(
    row.name for row in ROWS if len(row.name) >= _SHORTEST_NAME and not row.name.endswith("_")
)
