"""Carries the remedies of a scenario out, as users would paste them, and checks the machine again.

A remedy mends its cause if the cause is gone afterwards, for its subject, and no other has come.
What cannot be carried out in the lab is recorded with the reason, which follows from the action.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple, cast

from packaging.requirements import Requirement

from tests.lab.bench import Bench
from tests.lab.index import has_package, is_complete, is_stub, pip_variables
from tests.lab.programs import LIST_GPUS
from tests.lab.scenario import Examined, Scenario, check, laid_out
from tests.patience import PATIENCE
from tests.targets import folder as targets_folder
from tests.targets import python_of
from whygpu.api.releases import destination_of_machine, with_releases
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import diagnose
from whygpu.fixing.carrying_out import carry_out
from whygpu.fixing.remedies import moved
from whygpu.model.codec import decode
from whygpu.model.commands import shell_text
from whygpu.model.derived import installer_of
from whygpu.model.finding import Finding
from whygpu.model.remedy import (
    Action,
    Argument,
    Command,
    Install,
    Pip,
    Script,
    SetVariable,
    Step,
    steps_of,
)
from whygpu.model.report import Report
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import Installer
from whygpu.tables.lab_proofs import ROWS
from whygpu.tables.proof_rows import LabProof, LabResult

Result = Literal["mends", "fails", "eases", "shows", "not-here", "not-tried", "no-command"]
Fault = tuple[str, str]
"""A cause and its subject."""


class Trial(NamedTuple):
    """One remedy of a root cause, and what came of it."""

    scenario: str
    cause: str
    subject: str
    number: int
    """Its place among the remedies of the cause, from 1."""
    text: str
    """The remedy's first sentence, with the same paths in every run."""
    command: str
    result: Result
    detail: str = ""
    """What was installed, why it failed, or why it was not carried out."""


def row_of(trial: Trial) -> LabProof:
    """What is kept of a trial that did not fail."""
    assert trial.result not in ("fails", "not-tried")
    return LabProof(
        trial.scenario,
        trial.cause,
        trial.subject,
        trial.number,
        trial.text,
        cast(LabResult, trial.result),
        trial.detail,
    )


def differs(trial: Trial, rows: Collection[LabProof]) -> str:
    """In what a trial differs from the row that is kept of it; empty if in nothing."""
    row = next((row for row in rows if row[:4] == trial[:4]), None)
    if row is None:
        return "there is no row for it"
    if row.text != trial.text:
        return f"the row is about the remedy {row.text!r}"
    needs_large_wheels = row.result == "mends" and trial.result == "not-here"
    if trial.result in (row.result, "not-tried") or needs_large_wheels:
        return ""
    return f"the row has the result {row.result!r}, not {trial.result!r}: {trial.detail}"


def carry_out_remedies(
    scenario: Scenario,
    examined: Examined,
    folder: Path,
    is_wanted: Callable[[Trial], bool] = lambda trial: True,
) -> list[Trial]:
    """Every remedy of every root cause. Those that can be carried out are, if they are wanted."""
    snapshot = decode(Snapshot, examined.report["snapshot"])
    trials: list[Trial] = []
    for finding in _root_causes(snapshot):
        for number, remedy in enumerate(finding.remedies, 1):
            trial = Trial(
                scenario.name,
                finding.cause,
                finding.subject,
                number,
                _first_sentence(remedy.text, examined),
                shell_text(remedy.action, installer_of(snapshot)) or "",
                *_without_trying(scenario, remedy.action),
            )
            if trial.result == "not-tried" and is_wanted(trial):
                assert remedy.action is not None
                place = folder / f"{finding.cause}-{number}"
                trial = _tried(scenario, examined, snapshot, finding, remedy.action, trial, place)
            trials.append(trial)
    return trials


def is_first_proof(trial: Trial, rows: Sequence[LabProof] = ROWS) -> bool:
    """Whether the rows have this remedy here first, and before the others of its root cause."""
    mends = [row for row in rows if row.result == "mends"]
    of_root = next((row for row in mends if row[:3] == trial[:3]), None)
    of_cause = next(
        (row for row in mends if (row.cause, row.text) == (trial.cause, trial.text)), None
    )
    return of_root is not None and of_root == of_cause and of_root.number == trial.number


def _root_causes(snapshot: Snapshot) -> tuple[Finding, ...]:
    findings = diagnose(snapshot, catalogue()).root_causes
    return with_releases(findings, lambda: destination_of_machine(snapshot))


def _first_sentence(text: str, examined: Examined) -> str:
    places = {
        examined.environment: "/venv",
        examined.folder: "/machine",
        str(targets_folder()): "/targets",
    }
    for place, name in places.items():
        text = text.replace(place, name)
    # What is in brackets may depend on the processor of the machine that runs the lab.
    return re.sub(r" \([^()]*\)", "", text.partition(". ")[0]).removesuffix(".")


def _installed(action: Action) -> str:
    """Which of the packages that were installed are real."""
    wanted = [
        Requirement(text)
        for step in steps_of(action)
        if isinstance(step, Install)
        for text in step.requirements
    ]
    if not wanted:
        return ""
    real = [item.name for item in wanted if not is_stub(item.name)]
    parts = [f"the real {' and '.join(real)}"] if real else []
    if len(real) < len(wanted) or any(item.extras for item in wanted):
        parts.append("stubs of NVIDIA's wheels")
    return f"with {' and '.join(parts)}"


# --- what can be carried out ---


def _without_trying(scenario: Scenario, action: Action | None) -> tuple[Result, str]:
    """What is known about a remedy before it is carried out."""
    if action is None:
        return "no-command", "the remedy is for a person"
    reasons = [found for step in steps_of(action) if (found := _obstacle(step)) is not None]
    obstacles = [found for found in reasons if found[0] == "not-here"]
    if obstacles:
        return obstacles[0]
    # A step that only shows something may follow one that changes something.
    if len(reasons) == len(steps_of(action)):
        return reasons[0]
    return ("not-here", scenario.unmendable) if scenario.unmendable else ("not-tried", "")


_SHOWS = re.compile(
    r"(?:sudo )?(?:dmesg|fuser -v|ldconfig -p|grep|ls|mokutil|nvidia-smi(?: -L| --query| -q|$)"
    r"|systemctl status|whygpu (?:check|plan)|TF_CPP_VMODULE=)"
)
_CARRIED_OUT = re.compile(r"sed -i 's/[^']*' ~/\.keras/keras\.json$|whygpu run -- ")
_ELSEWHERE = {
    "conda": "needs conda and its channels",
    "docker": "needs a container engine on a machine with a GPU",
    "kill": "would end a process; that of the scenario does not exist",
    "podman": "needs a container engine on a machine with a GPU",
    "srun": "needs a cluster",
    "wsl": "is for Windows",
}


_EASES = {"CUDA_CACHE_MAXSIZE": "keeps what was compiled, so that only the first start is slow"}
"""Variables that make a cause bearable, which stays."""


def _obstacle(step: Step) -> tuple[Result, str] | None:
    if isinstance(step, SetVariable) and step.name in _EASES:
        return "eases", _EASES[step.name]
    if isinstance(step, Pip):
        return "shows", "only asks pip"
    if isinstance(step, Install):
        return _too_large(step.requirements)
    if not isinstance(step, (Command, Script)):
        return None
    text = _plain_text(step)
    if _SHOWS.match(text) or " -X " in text:
        return "shows", "only shows more about the cause"
    if "sudo " in text:
        return "not-here", "needs root and a machine with this hardware"
    if " -m venv " in text:
        return (
            "not-here",
            "installs a framework into a new environment, which check does not examine",
        )
    if _CARRIED_OUT.match(text):
        return None
    # The lab runs no command that it does not know.
    reason = _ELSEWHERE.get(text.split()[0], "is not among the commands that the lab carries out")
    return "not-here", reason


def _plain_text(step: Command | Script) -> str:
    if isinstance(step, Script):
        return "".join(part.text if isinstance(part, Argument) else part for part in step.parts)
    words = [word.text if isinstance(word, Argument) else word for word in step.argv]
    return " ".join(("sudo", *words) if step.needs_root else words)


def _too_large(requirements: tuple[str, ...]) -> tuple[Result, str] | None:
    large = [text for text in requirements if not has_package(text)]
    if not large:
        return None
    return "not-here", f"installs {' and '.join(large)}, which is too large for the lab"


# --- carrying it out ---


def _tried(
    scenario: Scenario,
    examined: Examined,
    snapshot: Snapshot,
    finding: Finding,
    action: Action,
    trial: Trial,
    folder: Path,
) -> Trial:
    # Only pip changes files of the environment.
    whole = any(isinstance(step, Install) for step in steps_of(action))
    with laid_out(scenario, folder, whole=whole) as (bench, before):
        own = (action, installer_of(snapshot))
        own = moved(own, examined.environment, str(bench.environment))
        own = moved(own, examined.folder, str(bench.folder))
        if _is_repaired_run(action):
            failure = _repaired_run(scenario, bench, before, finding)
        else:
            failure = _mended(scenario, bench, before, snapshot, finding, *own)
    if "No matching distribution" in failure and not is_complete(python_of(scenario.target)):
        # The wheels could not be fetched, for example because there is no network.
        return trial._replace(detail=failure)
    if failure:
        return trial._replace(result="fails", detail=failure)
    return trial._replace(result="mends", detail=_installed(action))


def _mended(
    scenario: Scenario,
    bench: Bench,
    before: list[str],
    snapshot: Snapshot,
    finding: Finding,
    action: Action,
    installer: Installer,
) -> str:
    """Why the remedy does not mend the cause; empty if it does."""
    pip = pip_variables(python_of(scenario.target))
    done = carry_out(
        action, installer, {**bench.environ, **pip}, str(bench.folder), time_limit=PATIENCE
    )
    if done.failure:
        return done.failure
    environ = {name: value for name, value in done.environ.items() if name not in pip}
    # A framework that finds the GPU would compute on it, and the stub cannot.
    probe = scenario.driver is None or _fault(finding) not in _faults(_found(snapshot, False))
    with ThreadPoolExecutor(1) as pool:
        listed = pool.submit(_gpus_listed, scenario, bench, before, environ)
        report, _ = check(scenario, bench, before, environ, probe=probe)
        gpus = listed.result()
    now = _found(decode(Snapshot, report["snapshot"]), probe)
    return _still_wrong(_found(snapshot, probe), now, finding, gpus)


def _still_wrong(was: Report, now: Report, finding: Finding, gpus: int | None) -> str:
    if _fault(finding) in _faults(now):
        return "the cause is still there"
    roots = {_fault(item) for item in now.root_causes if item.severity != "info"}
    if roots - _faults(was):
        return f"new: {sorted(roots - _faults(was))}"
    if gpus == 0 and not any(item.effect != "none" for item in now.root_causes):
        return "nothing is wrong any more, but TensorFlow lists no GPU"
    return ""


def _found(snapshot: Snapshot, probes: bool) -> Report:
    return diagnose(snapshot if probes else snapshot._replace(probes=()), catalogue())


def _faults(report: Report) -> frozenset[Fault]:
    return frozenset(_fault(item) for item in report.findings if item.severity != "info")


def _fault(finding: Finding) -> Fault:
    return finding.cause, finding.subject


def _gpus_listed(
    scenario: Scenario, bench: Bench, before: list[str], environ: Mapping[str, str]
) -> int | None:
    """How many GPUs TensorFlow lists, if the scenario is about that."""
    if scenario.driver is None or LIST_GPUS not in scenario.does.code:
        return None
    done = subprocess.run(
        [*before, bench.python, "-c", LIST_GPUS],
        env=environ,
        cwd=bench.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    found = re.search(r"GPUs: (\d+)", done.stdout)
    return int(found[1]) if found else None


def _is_repaired_run(action: Action) -> bool:
    return isinstance(action, Command) and action.argv[:3] == ("whygpu", "run", "--")


def _repaired_run(scenario: Scenario, bench: Bench, before: list[str], finding: Finding) -> str:
    """`whygpu run` keeps a repair only if the machine is then without the fault."""
    program, report = bench.folder / "PROGRAM.py", bench.folder / "run.json"
    program.write_text(scenario.does.code)
    command = [sys.executable, "-m", "whygpu", "run", "--report", str(report), "--"]
    subprocess.run(
        [*before, *command, bench.python, str(program)],
        env=bench.environ,
        cwd=bench.folder,
        capture_output=True,
        timeout=PATIENCE,
    )
    if not os.path.exists(report):
        return "whygpu run wrote no report"
    repairs = json.loads(report.read_text())["repairs"]
    codes = [repair["code"] for repair in repairs]
    return "" if finding.code in codes else f"whygpu run repaired only {codes}"
