"""Statements of a traceback that failed because the framework saw fewer GPUs than they use."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from whygpu.causes.evidence.device_code import gpus_listed, text_of, tf_name
from whygpu.causes.evidence.device_selection import unchecked_items
from whygpu.model.events import Call
from whygpu.model.log import Log, Raised
from whygpu.model.program import Program
from whygpu.model.values import Result

_TAKES_DEVICES = {
    "config.get_device_details",
    "config.get_memory_growth",
    "config.get_logical_device_configuration",
    "config.get_virtual_device_configuration",
    "config.set_logical_device_configuration",
    "config.set_memory_growth",
    "config.set_virtual_device_configuration",
    "config.set_visible_devices",
}
"""TensorFlow calls whose first argument is a physical device, or a list of them."""


NVIDIA_SMI = "nvidia-smi"
"""GPUtil lists the GPUs that this program prints, and none if it cannot run it."""


class MissingGpu(NamedTuple):
    """An item that the list of devices does not have."""

    line: int
    """The line of the exception in the log."""
    framework: str
    """What listed the GPUs: a framework, or NVIDIA_SMI."""
    taken: str
    """As written in the program: gpus[0], or the call that lists them."""
    number: int | None
    """None if the shown code does not contain it."""


@lru_cache(maxsize=1)
def missing_gpus(log: Log) -> tuple[MissingGpu, ...]:
    """Exceptions that ended the program because a list of GPUs did not have the item."""
    ends = {failure.line for failure in log.failures}
    return tuple(
        found
        for raised in log.raised
        if raised.program is not None and raised.line in ends
        for found in _taken(raised, raised.program)
    )


def lines_lacking_a_gpu(log: Log) -> frozenset[int]:
    return frozenset(found.line for found in missing_gpus(log))


def _taken(raised: Raised, program: Program) -> Iterator[MissingGpu]:
    for event in program.takings():
        of = event.value.of
        if isinstance(of, Result) and of.call.path == "GPUtil.getGPUs":
            taken = program.source(event.node)
            yield MissingGpu(raised.line, NVIDIA_SMI, taken, event.value.number)
            return
    for item in unchecked_items(program, caught=True):
        yield MissingGpu(raised.line, item.framework, program.source(item.node), item.number)
        return
    for call in program.calls():
        for node in _devices_of(call):
            yield MissingGpu(raised.line, "tensorflow", program.source(node), _number(node))
            return
    for call in program.calls():
        if gpus_listed(Result(call)):
            # The list is used as a whole: gpu, = list_physical_devices("GPU"), next(iter(...)).
            several = "unpack (expected" in raised.message and "(expected 1," not in raised.message
            taken = program.source(call.node)
            yield MissingGpu(raised.line, "tensorflow", taken, None if several else 0)
            return


def _devices_of(call: Call) -> Iterator[ast.Subscript]:
    """Items of a list that are passed to a call that needs devices: set_memory_growth(gpus[0])."""
    if tf_name(call.path) not in _TAKES_DEVICES:
        return
    if (text_of(call.argument(1, "device_type")) or "").upper() == "CPU":
        return
    arguments = [*call.node.args[:1], *(keyword.value for keyword in call.node.keywords[:1])]
    for argument in arguments[:1]:
        for node in ast.walk(argument):
            if isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
                yield node


def _number(node: ast.Subscript) -> int | None:
    try:
        value = ast.literal_eval(node.slice)
    except ValueError:
        return None
    return value if type(value) is int else None
