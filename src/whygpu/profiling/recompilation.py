"""Why a function was compiled again: what differs from the time before."""

from __future__ import annotations

import itertools
import os.path
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from whygpu.model.lazy_regex import late
from whygpu.model.profile import Compilation, CompiledArgument

Change = Literal["shape", "value", "type", "object", "function", "state", "unknown"]
"""`function`: a new function is made each time. `object`: an argument is another object."""

_SIZE = late(
    r"tensor '([^'\n]{1,80})' (size|stride) mismatch at index (\d{1,3})\. "
    r"expected (\d{1,18}), actual (\d{1,18})"
)
_ELEMENTS = late(
    r"tensor '([^'\n]{1,80})' (\w{1,20}) mismatch\. expected ([^,\n]{1,60}), actual ([^\n]{1,60})"
)
_EQUAL = late(r"([^\s=#]{1,100}) == ([^#\n]{1,80})")
_TYPE = late(r"___check_type_id\(([^,\n]{1,100}), \d{1,20}\), type=<class '([^'\n]{1,80})'>")
_OBJECT = late(r"___check_obj_id\(([^,\n]{1,100}),")
_NUMBER = late(r"^\d{1,6}/\d{1,6}: ")
_LONGEST = 120


class Difference(NamedTuple):
    """What changed between two compilations of a function."""

    change: Change
    argument: str
    text: str

    def cure(self, family: str) -> str:
        """What to change, in a program with steps of this family."""
        words = _OF_FRAMEWORK.get((self.change, family)) or _CURES[self.change]
        return words.format(self.argument)


_SAME_SHAPE = "give {} the same shape in each step (pad it, or leave out the last short batch)"
_CURES: dict[Change, str] = {
    "shape": _SAME_SHAPE,
    "value": "keep {} the same, or pass it as an array instead of a Python value",
    "type": "pass {} in the same form in each step",
    "object": "pass the same object as {} in each step",
    "function": "make the function once, before the loop",
    "state": "keep shapes, Python arguments and settings the same from step to step",
    "unknown": "keep shapes and Python arguments the same from step to step",
}
_OF_FRAMEWORK: dict[tuple[Change, str], str] = {
    ("shape", "torch"): f"{_SAME_SHAPE}, or torch.compile(..., dynamic=True)",
    ("shape", "tensorflow"): f"{_SAME_SHAPE}, or tf.function(..., reduce_retracing=True)",
    ("value", "tensorflow"): "pass {} as a tensor: tf.constant(...)",
    ("value", "jax"): "keep {} the same, or do not make it a static argument",
}


def why_recompiled(compilations: Sequence[Compilation], begin: float, end: float) -> Difference:
    """For the function that was compiled longest in the window. The text is empty for none."""
    inside = [each for each in compilations if begin <= each.end <= end]
    if not inside:
        return Difference("unknown", "", "")
    seconds: dict[tuple[str, str, int], float] = {}
    for each in inside:
        seconds[_function(each)] = seconds.get(_function(each), 0.0) + each.seconds
    most = max(seconds, key=lambda function: seconds[function])
    history = [each for each in compilations if _function(each) == most and each.end <= end]
    count = sum(1 for each in inside if _function(each) == most)
    found = _usual(_differences(history[-count - 1 :]))
    what = _name(history[-1])
    times = "once" if count == 1 else f"{count:,} times"
    if len(history) == 1:
        # Without an earlier one it is not "again".
        return Difference("unknown", "", f"{what} was compiled {times}")
    return found._replace(text=f"{what} was compiled {times}: {found.text}")


def _function(compilation: Compilation) -> tuple[str, str, int]:
    return compilation.what, compilation.file, compilation.line


def _name(compilation: Compilation) -> str:
    if not compilation.file:
        return compilation.what
    return f"{compilation.what} ({os.path.basename(compilation.file)}:{compilation.line})"


def _usual(differences: Sequence[Difference]) -> Difference:
    """The latest example of what changed most often."""
    if not differences:
        return Difference("unknown", "", "what changed is not known")
    counts: dict[tuple[Change, str], int] = {}
    for each in differences:
        key = (each.change, each.argument)
        counts[key] = counts.get(key, 0) + 1
    most = max(counts, key=lambda key: counts[key])
    return next(each for each in reversed(differences) if (each.change, each.argument) == most)


def _differences(history: Sequence[Compilation]) -> list[Difference]:
    """What changed from each compilation to the next; for each pair the first that decides."""
    found = []
    for before, now in itertools.pairwise(history):
        first = next(_between(before, now), None)
        found.append(first or Difference("unknown", "", _NOTHING))
    return found


_NOTHING = (
    "its arguments looked the same as before; something else that it depends on changed, such as a "
    "setting of the framework"
)


def _between(before: Compilation, now: Compilation) -> Iterator[Difference]:
    if now.reason:
        yield _told(now.reason)
        return
    if now.made != before.made:
        yield Difference(
            "function", "", "a new function is made each time, so nothing compiled is used again"
        )
    earlier = {argument.name: argument for argument in before.arguments}
    later = {argument.name for argument in now.arguments}
    for argument in now.arguments:
        known = earlier.get(argument.name)
        if known is None:
            yield Difference("type", argument.name, f"{argument.name} was not there before")
        elif known != argument:
            yield _changed(known, argument)
    for name in earlier:
        if name not in later:
            yield Difference("type", name, f"{name} is no longer there")


def _changed(before: CompiledArgument, now: CompiledArgument) -> Difference:
    name = now.name
    if before.type != now.type or (before.shape is None) != (now.shape is None):
        return Difference("type", name, f"{name} was {_kind(before)}, then {_kind(now)}")
    if before.shape != now.shape:
        text = f"{name} had shape {_shape(before)}, then {_shape(now)}"
        return Difference("shape", name, text)
    if before.value != now.value:
        return Difference("value", name, f"{name} was {before.value}, then {now.value}")
    return Difference("object", name, f"{name} is another {now.type} object each time")


def _kind(argument: CompiledArgument) -> str:
    return argument.type if argument.shape is None else f"an array of {argument.type}"


def _shape(argument: CompiledArgument) -> str:
    lengths = ["?" if length < 0 else str(length) for length in argument.shape or ()]
    return f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})"


def _told(reason: str) -> Difference:
    """The reason that torch.compile gives: the first check that no longer held."""
    line = _NUMBER.sub("", reason.split("\n")[0])
    if match := _SIZE.search(line):
        name, what, axis, before, now = match.groups()
        length = "length" if what == "size" else "stride"
        text = f"axis {axis} of {name} had {length} {before}, then {now}"
        return Difference("shape", name, text)
    if match := _ELEMENTS.search(line):
        name, what, old, new = match.groups()
        return Difference("type", name, f"the {what} of {name} was {old}, then {new}")
    if match := _TYPE.search(line):
        name, kind = match.groups()
        return Difference("type", name, f"{name} is no longer of type {kind}")
    if match := _OBJECT.search(line):
        return Difference("object", match[1], f"{match[1]} is another object each time")
    if match := _EQUAL.search(line):
        name, value = match.groups()
        return Difference("value", name, f"{name} was {value.strip()}, and then another value")
    kept = line.partition("#")[0].strip()[:_LONGEST]
    change: Change = "state" if "GLOBAL_STATE" in line else "unknown"
    return Difference(change, "", f"torch.compile says: {kept}")
