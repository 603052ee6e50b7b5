"""The logs of many jobs are counted by cause, node and week; what cannot be read is named."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import time

import pytest

from tests.fleet.closed import closed_to_the_walk
from tests.schemas import obeys
from whygpu import UsageError, explain, fleet_explain
from whygpu.cli.main import main
from whygpu.fleet.job_logs import FoundLogs, find_logs, node_in
from whygpu.fleet.log_summary import MOST_DOUBTS, MOST_UNREAD, OTHER_DOUBTS, summarise_logs
from whygpu.model.fleet_logs import FleetLogs, JobLog, UnreadLog

LOGS = pathlib.Path(__file__).parent.parent / "logs"
HIDDEN = (LOGS / "h200-torch-hidden.log").read_bytes()
OOM = (LOGS / "h200-cupy-oom.log").read_bytes()
FINE = b"epoch 1 loss 0.5\nepoch 2 loss 0.4\ndone\n"


def written(path: pathlib.Path, content: bytes, day: str = "2026-11-09") -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    when = time.mktime(time.strptime(f"{day} 12", "%Y-%m-%d %H"))
    os.utime(path, (when, when))
    return path


@pytest.fixture
def jobs(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "jobs"
    for number in range(4):
        written(folder / "gpu-1" / f"{number}.log", HIDDEN, "2026-11-09")
    written(folder / "gpu-1" / "5.out", FINE)
    written(folder / "gpu-2" / "1.log", HIDDEN, "2026-11-16")
    written(folder / "gpu-2" / "2.log.gz", gzip.compress(OOM), "2026-11-16")
    written(folder / "gpu-2" / "job.e1234", OOM, "2026-11-16")
    written(folder / "gpu-2" / "model.safetensors", b"x" * 100)
    return folder


def test_jobs_are_counted_by_cause_node_and_week(jobs: pathlib.Path) -> None:
    found = fleet_explain(jobs)
    assert (found.files, found.other_files, found.unread_files) == (8, 1, 0)
    hidden, oom = found.causes
    assert (hidden.cause, hidden.jobs) == ("visible-devices-hides-gpu", 5)
    assert hidden.nodes == (("gpu-1", 4), ("gpu-2", 1))
    assert hidden.weeks == (("2026-W46", 4), ("2026-W47", 1))
    assert (oom.cause, oom.jobs) == ("oom-model-too-big", 2)
    assert found.nodes == (("gpu-1", 5, 4), ("gpu-2", 3, 3))
    assert found.weeks == (("2026-W46", 4), ("2026-W47", 3))
    assert found.exit_code == 1


def test_the_cause_of_a_job_is_the_one_that_explain_names(jobs: pathlib.Path) -> None:
    for group in fleet_explain(jobs).causes:
        assert group.example is not None
        alone = explain(pathlib.Path(group.example.file))
        assert group.example.finding == alone.root_causes[0]


@pytest.mark.slow
def test_several_processes_find_what_one_finds(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, path in enumerate(sorted(LOGS.glob("*.log"))):
        written(tmp_path / f"n{number % 3}" / path.name, path.read_bytes())
    alone = fleet_explain(tmp_path, workers=1)
    monkeypatch.setattr("whygpu.fleet.log_pool._WORTH_A_POOL", 1)
    assert fleet_explain(tmp_path, workers=2) == alone
    assert alone.files == len(list(LOGS.glob("*.log")))


def test_what_cannot_be_read_is_named_and_does_not_end_the_rest(jobs: pathlib.Path) -> None:
    os.mkfifo(jobs / "gpu-1" / "pipe.log")
    (jobs / "gpu-1" / "gone.log").symlink_to("nowhere")
    found = fleet_explain(jobs)
    assert {pathlib.Path(row.file).name for row in found.unread} == {"pipe.log", "gone.log"}
    assert found.unread_files == 2
    assert sum(count.jobs for count in found.verdicts) + found.unread_files == found.files


def test_a_log_that_breaks_a_detector_is_a_row(
    jobs: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr("whygpu.fleet.job_logs.explain", broken)
    found = fleet_explain(jobs / "gpu-1" / "5.out")
    assert "a bug in whygpu: RuntimeError: boom" in found.unread[0].reason
    assert found.exit_code == 4


@pytest.mark.parametrize(
    ("below", "pattern", "node"),
    [
        ("gpu-1/2026/a.log", None, "gpu-1"),
        ("a.log", None, ""),
        ("run/x-gpu-17-3.log", r"(gpu-\d+)", "gpu-17"),
        ("run/x-gpu-17-3.log", r"gpu-\d+", "gpu-17"),
        ("run/a.log", r"(gpu-\d+)", ""),
    ],
)
def test_the_node_is_read_from_the_path(below: str, pattern: str | None, node: str) -> None:
    assert node_in(below, pattern) == node


def test_names_choose_the_logs(jobs: pathlib.Path) -> None:
    found = find_logs([str(jobs)], ["job.*"])
    assert [pathlib.Path(log.path).name for log in found.logs] == ["job.e1234"]
    with pytest.raises(UsageError, match="no log in"):
        find_logs([str(jobs)], ["nothing-*"])


def test_a_wrong_pattern_is_wrong_usage(jobs: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="it is no regular expression"):
        fleet_explain(jobs, node_from="(")
    with pytest.raises(UsageError, match="expected a number of processes"):
        fleet_explain(jobs, workers=-1)


@pytest.mark.slow
def test_logs_that_decide_nothing_are_counted_by_what_they_lack(
    jobs: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written(jobs / "gpu-3" / "a.log", b"")
    written(jobs / "gpu-3" / "b.log", b"")
    written(jobs / "gpu-3" / "c.log.gz", gzip.compress(OOM)[:50])
    written(jobs / "gpu-3" / "d.log", b"\n" * 7 + b"Segmentation fault (core dumped)\n")
    written(jobs / "gpu-3" / "e.log", b"\n" * 70 + b"Segmentation fault (core dumped)\n")
    found = fleet_explain(jobs)
    assert [(row.jobs, pathlib.Path(row.file).name) for row in found.unknown] == [
        (2, "a.log"),
        (2, "d.log"),
        (1, "c.log.gz"),
    ]
    assert found.unknown[0].reason == "it is empty"
    assert "crashed at a line" in found.unknown[1].reason
    main(["fleet", "explain", str(jobs)])
    shown = " ".join(capsys.readouterr().out.split())
    assert "5 undecided" in shown
    assert "it is empty (2), as in" in shown


@pytest.mark.slow
def test_a_closed_folder_does_not_end_the_rest(
    jobs: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (jobs / "lost+found").mkdir()
    closed_to_the_walk(monkeypatch, jobs / "lost+found")
    found = fleet_explain(jobs)
    assert found.files == 8
    assert found.unread_folders == ((str(jobs / "lost+found"), "Permission denied"),)
    main(["fleet", "explain", str(jobs)])
    assert "lost+found:Permissiondenied" in "".join(capsys.readouterr().out.split())
    with pytest.raises(UsageError, match=r"no log in.*lost\+found cannot be read"):
        find_logs([str(jobs)], ["nothing-*"])


def counted(*rows: JobLog | UnreadLog) -> FleetLogs:
    return summarise_logs(rows, FoundLogs([], 0), lambda file, code: None)


def test_reasons_without_end_are_bounded() -> None:
    row = JobLog("a", "", "2026-W46", "unknown", "", "")
    found = counted(*(row._replace(doubt=f"{number}") for number in range(MOST_DOUBTS + 5)))
    assert len(found.unknown) == MOST_DOUBTS + 1
    assert (found.unknown[0].reason, found.unknown[0].jobs) == (OTHER_DOUBTS, 5)


def test_only_the_first_unreadable_files_are_kept() -> None:
    found = counted(*(UnreadLog(f"{number}", "x") for number in range(MOST_UNREAD + 5)))
    assert len(found.unread) == MOST_UNREAD
    assert found.unread_files == MOST_UNREAD + 5


def test_the_verdicts_decide_the_exit_code() -> None:
    fine = JobLog("a", "", "2026-W46", "nothing-wrong", "", "")
    assert counted(fine).exit_code == 0
    assert counted(fine, fine._replace(verdict="unknown")).exit_code == 4
    assert counted(fine, UnreadLog("b", "x")).exit_code == 4
    assert counted(fine, fine._replace(verdict="not-gpu")).exit_code == 1


@pytest.mark.slow
def test_the_command_line(jobs: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fleet", "explain", str(jobs)]) == 1
    text = capsys.readouterr().out
    assert "1. WG401 visible-devices-hides-gpu  5 jobs" in text
    assert "nodes  gpu-1 (4), gpu-2 (1)" in text
    assert main(["fleet", "explain", "--json", str(jobs)]) == 1
    data = json.loads(capsys.readouterr().out)
    obeys("fleet-explain", data)
    assert data["causes"][0]["example"]["file"].endswith("gpu-1/0.log")
