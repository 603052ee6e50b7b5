"""Checks that instructions which the processor lists work here, by executing them in a process."""

from __future__ import annotations

import json
import os.path
from typing import Any

from whygpu.collectors.instruction_worker import TILE_CODE, VECTOR_CODE
from whygpu.host.base import Completed, Host
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import Cpu, InstructionTrial, TrialOutcome

WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "instruction_worker.py")
TIME_LIMIT = 5.0
SOURCE = "executing them"

_OUTCOMES: dict[str, TrialOutcome] = {
    "runs": "runs",
    "traps": "traps",
    "not-permitted": "not-permitted",
}


def suspected(cpu: Cpu) -> bool:
    """Whether the processor lists instructions that are known to trap on some virtual machines."""
    listed = cpu.instruction_sets
    return isinstance(listed, Known) and any(name.startswith("amx_") for name in listed.value)


def with_trials(host: Host, machine: Snapshot) -> Snapshot:
    """The snapshot with the results of executing instructions, if it did not have them."""
    cpu = machine.system.cpu
    if isinstance(cpu.trials, Known):
        return machine
    return machine._replace(system=machine.system._replace(cpu=tried(host, cpu)))


def tried(host: Host, cpu: Cpu) -> Cpu:
    return cpu._replace(trials=_trials(host, cpu))


def command(host: Host, features: tuple[str, ...]) -> tuple[str, ...]:
    return (host.platform.python, "-I", "-S", WORKER, *features)


def _trials(host: Host, cpu: Cpu) -> Observed[tuple[InstructionTrial, ...]]:
    platform = host.platform
    if (platform.system, platform.machine) != ("Linux", "x86_64"):
        return Unknown(
            f"instructions are executed on Linux with x86-64 only; this is {platform.system} with "
            f"{platform.machine}"
        )
    if not isinstance(cpu.instruction_sets, Known):
        return Unknown("no instruction was executed: the processor's flags are not known")
    listed = tuple(
        name for name in (*VECTOR_CODE, *TILE_CODE) if name in cpu.instruction_sets.value
    )
    answer = host.run(command(host, listed), timeout=TIME_LIMIT)
    if not isinstance(answer, Known):
        why = answer.reason if isinstance(answer, Unknown) else f"no {answer.source}"
        return Unknown(f"no instruction was executed: {why}")
    return _read(answer.value)


def _read(answer: Completed) -> Observed[tuple[InstructionTrial, ...]]:
    if answer.timed_out:
        return Unknown(
            f"the process that executes instructions did not answer within {TIME_LIMIT:g} seconds"
        )
    found = _object(answer.stdout)
    if found is None:
        return Unknown(
            f"the process that executes instructions gave no answer (exit code {answer.code})"
        )
    if "outcomes" not in found:
        return Unknown(f"no instruction was executed: {found.get('error')}")
    return Known(
        tuple(
            InstructionTrial(name, _OUTCOMES.get(outcome, "unclear"))
            for name, outcome in found["outcomes"].items()
        ),
        SOURCE,
    )


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
