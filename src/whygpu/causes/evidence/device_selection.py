"""Items taken from lists of devices, and what is known about the length of these lists."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from whygpu.causes.evidence.device_code import (
    catches,
    devices_listed,
    gpus_listed,
    text_of,
    tf_name,
)
from whygpu.model.events import Call, Event, Taking
from whygpu.model.lazy_regex import late
from whygpu.model.program import Program, handlers_around, known_length
from whygpu.model.values import Constant, Item, Result


class UncheckedItem(NamedTuple):
    node: ast.Subscript
    number: int
    known: int
    """How many items the list is known to have."""
    framework: str
    event: Event


def unchecked_items(program: Program, *, caught: bool = False) -> Iterator[UncheckedItem]:
    """gpus[n] if the list may be shorter. With `caught`, also if an except clause handles it."""
    reported: set[tuple[ast.AST, str]] = set()
    for event in program.takings():
        sure = _always_there(event.value)
        if sure is None:
            continue
        framework, least = sure
        number = event.value.number
        assert number is not None
        needed = number + 1 if number >= 0 else -number
        known = max(least, known_length(event, event.value.of))
        if known >= needed or _condition_counts(event) or _condition_depends(program, event):
            continue
        if needed > 1 and (_is_test(program, event) or _makes_devices(program)):
            continue
        if not caught and any(catches(handler, "IndexError") for handler in handlers_around(event)):
            continue
        # Using the same item again in the same function is not a second error.
        again = (event.scope, program.source(event.node))
        if again in reported:
            continue
        reported.add(again)
        yield UncheckedItem(event.node, number, known, framework, event)


def _is_test(program: Program, event: Event) -> bool:
    """A test for machines with several devices is skipped on others, in one of many ways."""
    return bool(_TEST_FILE.search(program.path)) or getattr(event.scope, "name", "").startswith(
        "test"
    )


def _makes_devices(program: Program) -> bool:
    """The program tells JAX how many devices to create."""
    return any(word in program.text for word in _MAKES_DEVICES)


_TEST_FILE = late(r"(?:^|[/\\])(?:test_[^/\\]*|[^/\\]*_test|conftest)\.py$")
_MAKES_DEVICES = (
    "xla_force_host_platform_device_count",
    "jax_num_cpu_devices",
    "set_host_platform_device_count",
)


def _always_there(item: Item) -> tuple[str, int] | None:
    """For an item of a list of GPUs: the framework, and the least length on any machine."""
    listed = devices_listed(item.of)
    if listed is not None:
        # Without a type, the CPU is the first item.
        return ("tensorflow", {"GPU": 0, "": 1}.get(listed[1], 1 << 30))
    if isinstance(item.of, Result) and item.of.call.path in ("jax.devices", "jax.local_devices"):
        # jax.devices("gpu") raises an error if there is no GPU, so its result has an item.
        return ("jax", 1)
    return None


def _condition_counts(event: Taking) -> bool:
    """A condition around it compares a number: the author checks in a way we cannot follow."""
    return any(
        isinstance(node, ast.Compare)
        and any(
            isinstance(side, ast.Constant) and isinstance(side.value, int)
            for side in (node.left, *node.comparators)
        )
        and not _is_length_test(node)
        for frame in event.context
        if frame.test is not None
        for node in ast.walk(frame.test)
    )


def _condition_depends(program: Program, event: Taking) -> bool:
    """A condition around it is about a variable that was computed from the list: n = len(gpus)."""
    of = event.node.value
    tests = [frame.test for frame in event.context if frame.test is not None]
    names = {node.id for test in tests for node in ast.walk(test) if isinstance(node, ast.Name)}
    if not names or not isinstance(of, ast.Name):
        return False
    computed = _computed_names(program)
    return any(of.id in computed.get((event.scope, name), ()) for name in names)


@lru_cache(maxsize=1)
def _computed_names(program: Program) -> dict[tuple[ast.AST, str], set[str]]:
    """For each function, or the module, and variable: the names that its values are made from."""
    found: dict[tuple[ast.AST, str], set[str]] = {}
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.Assign):
            continue
        scope: ast.AST | None = program.parent(node)
        while not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module | None):
            scope = program.parent(scope)
        used = {each.id for each in ast.walk(node.value) if isinstance(each, ast.Name)}
        for target in node.targets:
            if isinstance(target, ast.Name) and scope is not None:
                found.setdefault((scope, target.id), set()).update(used)
    return found


def _is_length_test(node: ast.Compare) -> bool:
    return any(
        isinstance(side, ast.Call) and getattr(side.func, "id", "") == "len"
        for side in (node.left, *node.comparators)
    )


class PartialGrowth(NamedTuple):
    call: Call
    number: int
    only_call: bool


def partial_growth(program: Program) -> PartialGrowth | None:
    """Memory growth that is set for one GPU of the list only."""
    grown = [
        call
        for call in program.calls()
        if tf_name(call.path) == "config.set_memory_growth"
        and call.argument(1, "enable") in (Constant(True), Constant(1))
    ]
    chosen = [call.argument(0, "device") for call in grown]
    numbers = {value.number for value in chosen if isinstance(value, Item)}
    if len(numbers) != 1 or None in numbers or not all(isinstance(v, Item) for v in chosen):
        return None
    call, value = grown[0], chosen[0]
    assert isinstance(value, Item)
    assert value.number is not None
    if not gpus_listed(value.of) or _exactly_one(call) or _sees_one_gpu(program):
        return None
    places = {program.place(call.node).start for call in grown}
    return PartialGrowth(call, value.number, len(places) == 1)


def _sees_one_gpu(program: Program) -> bool:
    """The program itself hides the other GPUs."""
    for setting in program.settings():
        if setting.path == "CUDA_VISIBLE_DEVICES":
            word = text_of(setting.value)
            if word is None or "," not in word:
                return True
    for call in program.calls():
        if tf_name(call.path) == "config.set_visible_devices":
            listed = devices_listed(call.argument(0, "devices"))
            if listed is None or listed[1] != "CPU":
                return True
    return False


def _exactly_one(call: Call) -> bool:
    """A condition states that there is exactly one GPU."""
    return any(
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], ast.Eq)
        and isinstance(node.comparators[0], ast.Constant)
        and node.comparators[0].value == 1
        for frame in call.context
        if frame.test is not None
        for node in ast.walk(frame.test)
    )
