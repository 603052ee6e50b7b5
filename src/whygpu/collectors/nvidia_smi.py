"""The driver as nvidia-smi describes it, if NVML itself cannot be queried."""

from __future__ import annotations

from typing import Literal

from whygpu.collectors.driver_answer import DriverAnswer, GpuIds, bus_address
from whygpu.collectors.gpu_pairs import ask_nvidia_smi
from whygpu.host.base import Completed, Host
from whygpu.model.driver import DriverState, Gpu
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.outside_text import excerpt

SOURCE = "nvidia-smi --query-gpu"

FIELDS = (
    "driver_version",
    "uuid",
    "name",
    "pci.bus_id",
    "memory.total",
    "memory.used",
    "compute_mode",
    "mig.mode.current",
    "ecc.errors.uncorrected.volatile.total",
    "compute_cap",
)
OLD_FIELDS = FIELDS[:-1]
"""Drivers before 510 do not know compute_cap and refuse a query that contains it."""

STATES: tuple[tuple[str, DriverState], ...] = (
    ("couldn't find libnvidia-ml", "missing"),
    ("couldn't communicate with the NVIDIA driver", "not-loaded"),
    ("Driver/library version mismatch", "mismatched"),
    ("Insufficient Permissions", "denied"),
    ("GPU is lost", "lost"),
)


def ask(host: Host, *, timeout: float) -> DriverAnswer | None:
    """None if there is no nvidia-smi."""
    for fields in (FIELDS, OLD_FIELDS):
        answer = host.run(command(fields), timeout=timeout)
        if not isinstance(answer, Known):
            return None
        if "not a valid field" not in answer.value.stdout + answer.value.stderr:
            return _with_pairs(host, _read(answer.value, fields), timeout)
    return _failed("failed", "nvidia-smi does not understand the query")


def _with_pairs(host: Host, answer: DriverAnswer, timeout: float) -> DriverAnswer:
    if not isinstance(answer.gpus, Known):
        return answer
    if len(answer.gpus.value) < 2:
        return answer._replace(pairs=Known((), SOURCE))
    return answer._replace(pairs=ask_nvidia_smi(host, timeout=timeout))


def command(fields: tuple[str, ...] = FIELDS) -> tuple[str, ...]:
    return ("nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")


def _read(answer: Completed, fields: tuple[str, ...]) -> DriverAnswer:
    if answer.timed_out:
        return _failed("hung", "nvidia-smi did not answer in time")
    words = " ".join((answer.stdout + " " + answer.stderr).split())
    if "No devices were found" in words:
        unknown = Unknown("nvidia-smi reports versions only if there is a GPU")
        return DriverAnswer(Known("working", SOURCE), words, unknown, unknown, Known((), SOURCE))
    if answer.code != 0:
        return _failed(_state(words), words)
    rows = [dict(zip(fields, row, strict=False)) for row in _rows(answer.stdout)]
    if not rows or any(len(row) != len(fields) for row in rows):
        return _failed("failed", f"nvidia-smi gave an unknown answer: {excerpt(words, 200)}")
    return DriverAnswer(
        state=Known("working", SOURCE),
        detail="",
        version=Known(rows[0]["driver_version"], SOURCE),
        cuda=Unknown(
            "the query of nvidia-smi does not report the CUDA version that the driver supports"
        ),
        gpus=Known(tuple(_gpu(index, row) for index, row in enumerate(rows)), SOURCE),
        ids=tuple(GpuIds(row["uuid"]) for row in rows),
    )


def _state(words: str) -> DriverState:
    for text, state in STATES:
        if text in words:
            return state
    return "failed"


def _rows(text: str) -> list[list[str]]:
    import csv

    return [row for row in csv.reader(text.splitlines(), skipinitialspace=True) if row]


def _failed(state: DriverState, detail: str) -> DriverAnswer:
    reason = Unknown(detail)
    return DriverAnswer(Known(state, SOURCE), detail, reason, reason, reason)


def _gpu(index: int, row: dict[str, str]) -> Gpu:
    return Gpu(
        number=index,
        name=row["name"],
        pci_address=bus_address(row["pci.bus_id"]),
        compute_capability=_field(row.get("compute_cap", "")),
        memory_total_bytes=_mebibytes(row["memory.total"]),
        memory_used_bytes=_mebibytes(row["memory.used"]),
        compute_mode=_compute_mode(row["compute_mode"]),
        mig=Known(row["mig.mode.current"] == "Enabled", SOURCE),
        ecc_uncorrected=_ecc(row["ecc.errors.uncorrected.volatile.total"]),
        processes=Unknown("processes are read through NVML only"),
        memory_reserved_bytes=Unknown("it is read through NVML only"),
        health=Absent("the state of the hardware in what nvidia-smi was asked for"),
    )


def _field(text: str) -> Observed[str]:
    """The field; unknown if it is bracketed, like [N/A] or [Unknown Error]."""
    if not text or text.startswith("["):
        return Unknown(f"nvidia-smi does not report it: {text or 'this version has no such field'}")
    return Known(text, SOURCE)


def _number(text: str, unit: int = 1) -> Observed[int]:
    field = _field(text)
    if isinstance(field, Known):
        if not field.value.isdecimal():
            return Unknown(f"nvidia-smi answered {field.value!r} instead of a number")
        return Known(int(field.value) * unit, SOURCE)
    return field


def _mebibytes(text: str) -> Observed[int]:
    return _number(text, 1 << 20)


def _ecc(text: str) -> Observed[int]:
    return Absent("error-correcting memory on this GPU") if text == "[N/A]" else _number(text)


def _compute_mode(text: str) -> Observed[Literal["default", "exclusive", "prohibited"]]:
    if text == "Default":
        return Known("default", SOURCE)
    if text == "Prohibited":
        return Known("prohibited", SOURCE)
    if text.startswith("Exclusive"):
        return Known("exclusive", SOURCE)
    return Unknown(f"nvidia-smi names an unknown compute mode: {text}")
