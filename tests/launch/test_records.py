"""What processes leave behind, and what is made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cases import each
from tests.schemas import obeys
from whygpu.launch.records import device_used, no_operation_ran, peak_memory, read
from whygpu.launch.trace_merge import merge
from whygpu.model.memory_use import Curve, Kept, Point, ProcessLimit, ProcessMemory, Rounds
from whygpu.model.observed import Absent, Known
from whygpu.model.policy import (
    CallOutcome,
    DevicePolicy,
    FrameworkUse,
    ProcessRecord,
    Repair,
    RunReport,
)
from whygpu.render.run_json import report_json
from whygpu.render.run_text import end_text


def use(*devices: str, name: str = "torch", peak: int | None = None) -> FrameworkUse:
    return FrameworkUse(name, "1.0", devices, peak)


def record(*uses: FrameworkUse, complete: bool = True, **trace: Any) -> ProcessRecord:
    return ProcessRecord(1, complete, uses, (), trace)


def report(*records: ProcessRecord, **changes: Any) -> RunReport:
    device = device_used(records)
    made = RunReport(
        exit_code=0,
        device=device,
        fallback=False,
        policy=DevicePolicy(),
        repairs=(Repair("WG203", "tensorflow", "a folder", "a reason", ()),),
        peak_memory_bytes=peak_memory(records, device, 2 << 30),
        records=records,
        traced=False,
    )
    return made._replace(**changes)


def reading(**changes: Any) -> dict[str, Any]:
    return {"framework": "jax", "name": "a", "status": "reported", **changes}


def test_files_beside_a_record_are_no_records(tmp_path: Path) -> None:
    """A program under `run --profile` was said to have ended without Python's exit handlers."""
    (tmp_path / "7-1000.json").write_text(json.dumps({"pid": 7, "complete": True}))
    (tmp_path / "7-1000.kineto.json").write_text('{"traceEvents": []}')
    assert [(each.pid, each.complete) for each in read(str(tmp_path))] == [(7, True)]


def test_the_profile_of_a_killed_process_is_the_one_that_it_saved(tmp_path: Path) -> None:
    (tmp_path / "7-1000.json").write_text(json.dumps({"pid": 7, "complete": False}))
    (tmp_path / "7-1000.profile").write_text(json.dumps({"seconds": 12.5, "cores": 2}))
    (killed,) = read(str(tmp_path))
    assert killed.profile is not None
    assert killed.profile.seconds == 12.5
    (tmp_path / "7-1000.json").write_text(json.dumps({"pid": 7, "complete": True}))
    (complete,) = read(str(tmp_path))
    assert complete.profile is None


def test_a_process_that_called_exec_does_not_get_the_profile_of_before(tmp_path: Path) -> None:
    """It has the same number."""
    (tmp_path / "7-1000.json").write_text(json.dumps({"pid": 7, "complete": True}))
    (tmp_path / "7-1000.profile").write_text(json.dumps({"seconds": 12.5, "cores": 2}))
    (tmp_path / "7-2000.json").write_text(json.dumps({"pid": 7, "complete": False}))
    assert [each.profile for each in read(str(tmp_path))] == [None, None]


def test_records_are_read_from_a_folder(tmp_path: Path) -> None:
    content = {
        "pid": 7,
        "complete": True,
        "frameworks": {
            "jax": {
                "version": "0.10",
                "used": [{"device": "gpu:0", "name": "H200"}],
                "peak_memory_bytes": 5,
            },
            "torch": {"version": "2.13"},
        },
        "notes": ["a note"],
        "trace": {},
        "calls": [{"framework": "jax", "name": "add_xla_flag", "outcome": "executed"}],
        "readings": [
            {"framework": "torch", "name": "cudnn_enabled", "status": "reported", "value": False},
            {"framework": "jax", "name": "memory_limits", "status": "reported", "value": [5, None]},
        ],
        "imported": 10.5,
        "ended": 20.5,
        "memory": {
            "error": "MemoryError: ",
            "curves": [
                {
                    "of": "jax",
                    "device": "gpu:0",
                    "began": 11.0,
                    "points": [{"seconds": 0.1, "low": 2, "high": 3}],
                }
            ],
            "rounds": [{"where": "train.py:3", "begun": 4}],
            "kept": [{"name": "outputs", "arrays": 8, "bytes": None, "of": "torch"}],
            "limit": {"name": "RLIMIT_AS", "limit": 9, "in_use": 8},
        },
    }
    (tmp_path / "7-1.json").write_text(json.dumps(content))
    (tmp_path / "8-1.json.part").write_text("{")
    (found,) = read(str(tmp_path))
    assert found.frameworks == (
        FrameworkUse("jax", "0.10", ("gpu:0",), 5),
        FrameworkUse("torch", "2.13", (), None),
    )
    assert (found.imported, found.ended) == (10.5, 20.5)
    assert found.calls == (CallOutcome("jax", "add_xla_flag", "executed"),)
    assert [reading.value for reading in found.readings] == [False, (5, None)]
    assert found.memory == ProcessMemory(
        error="MemoryError: ",
        curves=(Curve("jax", "gpu:0", 11.0, (Point(0.1, 2, 3),)),),
        rounds=(Rounds("train.py:3", 4),),
        kept=(Kept("outputs", 8, None, "torch"),),
        limit=ProcessLimit("RLIMIT_AS", 9, 8),
    )
    assert read(str(tmp_path / "gone")) == ()


@each(
    ("broken", "why"),
    [
        ({"calls": [{"framework": "jax", "name": "a", "outcome": "perhaps"}]}, "calls[0].outcome"),
        ({"readings": [{"framework": "jax", "name": "a"}]}, "readings[0].status"),
        ({"readings": [reading(value={"a": 1})]}, "readings[0].value"),
        ({"readings": [reading(value=[[1]])]}, "readings[0].value[0]"),
        ({"frameworks": {"jax": {}}}, "frameworks.jax.version"),
        ({"memory": {"curves": [{"of": "jax"}]}}, "memory.curves[0].device"),
        ({"memory": {"work": []}}, "memory.work"),
        ({"memory": 3}, "memory"),
    ],
)
def test_a_broken_part_costs_no_other(broken: dict[str, Any], why: str, tmp_path: Path) -> None:
    content = {"pid": 7, "complete": True, "notes": ["a note"], **broken}
    (tmp_path / "7-1.json").write_text(json.dumps(content))
    (found,) = read(str(tmp_path))
    assert (found.pid, found.complete) == (7, True)
    first, second = found.notes
    assert first == "a note"
    assert second.startswith(f"a part of the record of process 7 cannot be read: {why}: ")


@each(
    ("records", "device"),
    [
        ((), "none"),
        ((record(use()),), "none"),
        ((record(use("cpu")),), "cpu"),
        ((record(use("cpu")), record(use("cpu"), use("gpu:1", name="jax"))), "gpu"),
    ],
)
def test_the_device_of_a_run(records: tuple[ProcessRecord, ...], device: str) -> None:
    assert device_used(records) == device


IDLE = {"ops": [], "nothing_because": ["nothing was executed"]}
BUSY = {"ops": [{"op": "mm"}], "nothing_because": []}
UNKNOWN: dict[str, Any] = {"ops": [], "nothing_because": []}


@each(
    ("records", "ran"),
    [
        ((record(use("cpu"), torch=IDLE),), True),
        ((record(use("cpu"), use(name="keras"), torch=IDLE),), True),
        ((record(use("cpu"), torch=BUSY),), False),
        ((record(use("cpu"), torch=IDLE), record(use("cpu"), torch=BUSY)), False),
        # The tracer cannot tell; it failed; the process was killed.
        ((record(use("cpu"), torch=UNKNOWN),), False),
        ((record(use("cpu")),), False),
        ((record(use("cpu"), complete=False, torch=IDLE),), False),
    ],
)
def test_that_nothing_ran_must_be_said_for_every_framework(
    records: tuple[ProcessRecord, ...], ran: bool
) -> None:
    assert no_operation_ran(records) == ran


def test_peak_memory_is_the_devices() -> None:
    on_gpu = (record(use("gpu:0", peak=5), use(name="jax", peak=7)), record(use("gpu:0", peak=9)))
    assert peak_memory(on_gpu, "gpu", 100) == Known(12, "the frameworks' own counters")
    assert isinstance(peak_memory((record(use("gpu:0")),), "gpu", 100), Absent)
    assert peak_memory((), "none", 100) == Known(100, "the largest process of the run")


def test_the_line_at_the_end() -> None:
    gpu = record(use("gpu:0", "gpu:1", peak=3 << 30))
    assert end_text(report(gpu)) == (
        "ran on the GPU (PyTorch 1.0 on gpu:0, gpu:1); peak GPU memory 3 GiB; no fallback"
    )
    cpu = report(record(use("cpu")), record(use("cpu", name="jax")), fallback=True)
    assert end_text(cpu, " (WG101)") == (
        "ran on the CPU (PyTorch 1.0 and JAX 1.0); peak memory 2 GiB; a fallback: the GPU was not "
        "used (WG101)"
    )
    assert end_text(report()) == "no process reported a deep-learning framework; exit code 0"
    assert "used no device" in end_text(report(record(use())))
    assert end_text(report(record(use()), traced=True)) == (
        "PyTorch 1.0 was imported, and no operation was seen; exit code 0"
    )
    killed = report(record(use(), complete=False), exit_code=137)
    assert end_text(killed).startswith(
        "PyTorch 1.0 had reported no work on a device when SIGKILL ended it;"
    )
    killed = report(record(use("gpu:0", peak=5 << 20), complete=False), exit_code=143)
    assert end_text(killed) == (
        "ran on the GPU (PyTorch 1.0 on gpu:0); as last reported before SIGTERM ended it; peak GPU "
        "memory 5 MiB; no fallback"
    )
    one_of_several = report(record(use("cpu")), record(use("cpu"), complete=False))
    assert "before a process ended without Python's exit handlers" in end_text(one_of_several)


def test_reports_have_their_schema() -> None:
    made = report(record(use("gpu:0", peak=5)), exit_code=3)
    for trace in (None, merge([])):
        data = json.loads(report_json(made, trace))
        obeys("run", data)
    assert list(data) == [
        "schema",
        "exit_code",
        "device",
        "fallback",
        "policy",
        "in_force",
        "repairs",
        "peak_memory_bytes",
        "trace",
        "profile",
        "explanation",
        "out_of_memory",
        "notes",
    ]
    assert data["repairs"] == [{"code": "WG203", "what": "a folder", "why": "a reason"}]
