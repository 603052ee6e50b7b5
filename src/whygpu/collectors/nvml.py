"""Converts the JSON of the NVML worker to the types of the model."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from typing import Any, Literal, TypeVar

from whygpu.collectors.driver_answer import DriverAnswer, GpuIds, bus_address
from whygpu.collectors.gpu_health import gpu_health
from whygpu.collectors.gpu_pairs import gpu_pairs
from whygpu.collectors.nvml_worker import (
    LIBRARY_NOT_FOUND,
    NO_BINDINGS,
    NO_PERMISSION,
    WINDOWS_LIBRARY,
)
from whygpu.host.base import Completed, Host
from whygpu.host.own_process import own_command, own_environ
from whygpu.model.driver import DriverState, Gpu, GpuProcess
from whygpu.model.observed import Absent, Known, Observed, Unknown

T = TypeVar("T")

SOURCE = "NVML"
WORKER = "whygpu.collectors.nvml_worker"

NOT_SUPPORTED = 3
DRIVER_NOT_LOADED = 9
GPU_IS_LOST = 15

STATES: dict[int, DriverState] = {
    NO_PERMISSION: "denied",
    DRIVER_NOT_LOADED: "not-loaded",
    LIBRARY_NOT_FOUND: "missing",
    GPU_IS_LOST: "lost",
    16: "lost",  # RESET_REQUIRED: no work is possible until the GPU is reset
    18: "mismatched",  # LIB_RM_VERSION_MISMATCH
}
"""Every other error of NVML is "failed"."""

SILENT_GPU = "GPU that does not answer"

ComputeMode = Literal["default", "exclusive", "prohibited"]
COMPUTE_MODES: dict[int, ComputeMode] = {
    0: "default",
    1: "exclusive",  # per thread; drivers before 2016
    2: "prohibited",
    3: "exclusive",
}


class NotAsked(Exception):
    """NVML could not be queried from here, which says nothing about the driver."""


def ask(host: Host, *, timeout: float) -> DriverAnswer:
    """Run the worker. Raises NotAsked if this Python cannot load NVML."""
    command = own_command(host.platform.python, WORKER)
    answer = host.run(command, timeout=timeout, env=own_environ(host.environ))
    if isinstance(answer, Known):
        return _read(answer.value, timeout)
    raise NotAsked(answer.reason if isinstance(answer, Unknown) else f"no {answer.source}")


def _read(answer: Completed, timeout: float) -> DriverAnswer:
    if answer.timed_out:
        return failed("hung", f"NVML did not answer within {timeout:g} seconds")
    survey = _survey(answer.stdout)
    if survey is None:
        if answer.code < 0:
            return failed("failed", f"NVML crashed ({_signal(answer.code)})")
        raise NotAsked(_last_line(answer.stderr) or "the worker printed no answer")
    if "error" in survey:
        if survey["error"] == NO_BINDINGS:
            raise NotAsked(survey["text"])
        return failed(_state(survey), survey["text"])
    if "error" in survey["count"]:
        return failed(_state(survey["count"]), survey["count"]["text"])
    return _answer(survey)


def _survey(text: str) -> dict[str, Any] | None:
    """The worker's line. Start-up files and a toolkit's stub may print other lines."""
    for line in reversed(text.splitlines()):
        try:
            survey = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(survey, dict) and survey.keys() & {"error", "count"}:
            return survey
    return None


def failed(state: DriverState, detail: str) -> DriverAnswer:
    reason = Unknown(f"NVML could not answer: {detail}")
    return DriverAnswer(Known(state, SOURCE), detail, reason, reason, reason)


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2]


def _state(error: dict[str, Any]) -> DriverState:
    if error["error"] == LIBRARY_NOT_FOUND and not _names_no_file(error["text"]):
        # The library exists, but the loader cannot use it.
        return "failed"
    return STATES.get(error["error"], "failed")


def _names_no_file(text: str) -> bool:
    return text.startswith(("libnvidia-ml", WINDOWS_LIBRARY)) and "No such file" in text


def _answer(survey: dict[str, Any]) -> DriverAnswer:
    surveyed = survey["gpus"]
    troubles = {i: trouble for i, gpu in enumerate(surveyed) if (trouble := _trouble(gpu))}
    return DriverAnswer(
        state=Known(_common_state(len(surveyed), list(troubles.values())), SOURCE),
        detail="; ".join(f"GPU {index}: {trouble['text']}" for index, trouble in troubles.items()),
        version=_fact(survey["driver"], str),
        cuda=_fact(survey["cuda"], _cuda_version),
        gpus=Known(tuple(_gpu(index, gpu) for index, gpu in enumerate(surveyed)), SOURCE),
        ids=tuple(_ids(gpu) for gpu in surveyed),
        pairs=gpu_pairs(survey["pairs"]),
    )


def _common_state(count: int, troubles: list[dict[str, Any]]) -> DriverState:
    """One lost GPU decides the state. Other errors count only if every GPU has one."""
    states = [_state(trouble) for trouble in troubles]
    if "lost" in states:
        return "lost"
    return states[0] if states and len(states) == count else "working"


def _trouble(gpu: dict[str, Any]) -> dict[str, Any] | None:
    """Why the whole GPU cannot be used: it did not open, or was lost during the queries."""
    if "error" in gpu:
        return gpu
    facts = (*gpu.values(), *gpu["health"].values())
    lost = (fact for fact in facts if STATES.get(fact.get("error", 0)) == "lost")
    return next(lost, None)


def _ids(gpu: dict[str, Any]) -> GpuIds:
    if _trouble(gpu):
        return GpuIds("")
    return GpuIds(gpu["uuid"].get("value", ""), tuple(gpu["mig_uuids"].get("value", ())))


def _gpu(index: int, gpu: dict[str, Any]) -> Gpu:
    if "error" in gpu:
        return _silent(index, Unknown(f"NVML: {gpu['text']}"))
    return Gpu(
        number=index,
        name=gpu["name"].get("value", SILENT_GPU),
        pci_address=bus_address(gpu["address"]["value"]) if "value" in gpu["address"] else "",
        compute_capability=_fact(gpu["capability"], lambda pair: f"{pair[0]}.{pair[1]}"),
        memory_total_bytes=_fact(gpu["memory_total"], int),
        memory_used_bytes=_fact(gpu["memory_used"], int),
        compute_mode=_compute_mode(gpu["compute_mode"]),
        mig=_fact(gpu["mig"], bool, unsupported=Known(False, "NVML: this GPU has no MIG")),
        ecc_uncorrected=_fact(
            gpu["ecc_uncorrected"], int, unsupported=Absent("error-correcting memory on this GPU")
        ),
        processes=_fact(gpu["processes"], lambda rows: tuple(_process(row) for row in rows)),
        memory_reserved_bytes=_fact(gpu["memory_reserved"], int),
        health=Known(gpu_health(gpu["health"]), SOURCE),
    )


def _silent(index: int, reason: Unknown) -> Gpu:
    return Gpu(
        index,
        SILENT_GPU,
        "",
        reason,
        reason,
        reason,
        reason,
        reason,
        reason,
        reason,
        reason,
        reason,
    )


def _fact(
    fact: dict[str, Any], read: Callable[[Any], T], unsupported: Observed[T] | None = None
) -> Observed[T]:
    if "value" in fact:
        return Known(read(fact["value"]), SOURCE)
    if unsupported is not None and fact["error"] == NOT_SUPPORTED:
        return unsupported
    return Unknown(f"NVML: {fact['text']}")


def _compute_mode(fact: dict[str, Any]) -> Observed[ComputeMode]:
    if "value" in fact and fact["value"] not in COMPUTE_MODES:
        return Unknown(f"NVML names an unknown compute mode: {fact['value']}")
    absent = Absent("compute modes on this GPU")
    return _fact(fact, lambda number: COMPUTE_MODES[number], unsupported=absent)


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _process(row: dict[str, Any]) -> GpuProcess:
    memory = row["memory"]
    return GpuProcess(
        pid=row["pid"],
        name=_fact(row["name"], _program),
        memory_bytes=Unknown("NVML does not report memory per process here")
        if memory is None
        else Known(memory, SOURCE),
    )


def _program(command: str) -> str:
    """The program alone: a command line may contain private data."""
    words = command.split()
    return words[0].rpartition("/")[2] if words else command
