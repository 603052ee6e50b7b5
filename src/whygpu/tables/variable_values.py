"""What a value of an environment variable means, for readings that need nothing of the machine."""

from __future__ import annotations

import re
from collections.abc import Container

from whygpu.model.lazy_regex import late
from whygpu.tables.variable_readings import GpuList, Members, Number, Pairs, Reading, Text, Words
from whygpu.tables.variables import ROWS, row_of

Judgement = tuple[str, str]
"""The meaning of the value, and its problem; empty if it has none."""

_NAMES_NO_GPU = late(
    r"/?(?:job:|device:)?(?:cuda|gpu)(?::?\d+)?|all|auto|\d+\.\d+"
    r"|[\[({'\"][^\n]{0,80}|[^\n]{0,80}[\])}'\"]",
    re.IGNORECASE,
)
"""Words for GPUs that CUDA does not read: cuda:0, gpu0, all; and the first of [0, 1]."""
_WITHOUT_ROW = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_CACHE_MAXSIZE",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "MUSA_VISIBLE_DEVICES",
    "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT",
    "NCCL_IB_DISABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_SHM_DISABLE",
    "NCCL_SOCKET_IFNAME",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_MUSA_ALLOC_CONF",
    "SLURM_CPUS_ON_NODE",
    "TF_CPP_MIN_VLOG_LEVEL",
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_GPU_THREAD_COUNT",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_BLOCKING_WAIT",
)
"""Other names that exist."""
_NUMBERED = late(r"_\w?|\d{1,2}")
"""The end of a user's own name, which exists beside the known one: CUDA_VISIBLE_DEVICES_2."""
_MOST_SLIPS = 2
_LONG = 16
"""A name with more letters than this is still known with two slips."""
_SAME_START = 5
"""Letters with which a name and a misspelling of two slips both begin."""
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
    for item in filter(None, map(str.strip, items)):
        key, colon, _ = item.partition(":")
        if not colon:
            return reading.meaning, f"{item!r} is not key:value: {reading.otherwise}"
        meant = _meant_key(key.strip(), reading.keys)
        if meant:
            return reading.meaning, f"there is no option {key!r}, only {meant}: {reading.otherwise}"
    return reading.meaning, ""


def _meant_key(key: str, keys: tuple[str, ...]) -> str:
    """The option that a wrong one stands for: max_split_size_mb for max_split_size."""
    if not key or key in keys:
        return ""
    near = [each for each in keys if each.startswith(f"{key}_") or _slips(key, each) <= _MOST_SLIPS]
    return near[0] if len(near) == 1 else ""


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
    if name in _KNOWN or len(name) < _SHORTEST_NAME:
        return ""
    plain = re.sub(r"[\s-]+", "_", name.strip()).upper()
    if plain in _KNOWN:
        return plain
    near = [known for known in _KNOWN if _is_misspelt(plain, known)]
    return near[0] if len(near) == 1 else ""


def _is_misspelt(name: str, known: str) -> bool:
    if _one_slip_apart(name, known):
        return not _NUMBERED.fullmatch(name[len(known) :])
    return (
        abs(len(name) - len(known)) <= _MOST_SLIPS
        and name[:_SAME_START] == known[:_SAME_START]
        and len(known) > _LONG
        and not _NUMBERED.fullmatch(name[len(known) :])
        and _slips(name, known) == _MOST_SLIPS
    )


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


def _slips(one: str, other: str) -> int:
    """How many letters are missing, added, wrong, or swapped with the next."""
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, wanted in enumerate(other, 1):
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + (letter != wanted))
            swapped = (
                row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == wanted
            )
            if swapped:
                cost = min(cost, before[column - 2] + 1)
            current.append(cost)
        before, last = last, current
    return last[-1]


_KNOWN = frozenset(_WITHOUT_ROW) | {
    row.name for row in ROWS if len(row.name) >= _SHORTEST_NAME and not row.name.endswith("_")
}
