"""Runs a command under a policy: examines the machine, plans, executes, reports."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from whygpu.errors import PolicyError, UsageError
from whygpu.launch import command, program_process, records
from whygpu.launch.environment import changed
from whygpu.launch.in_force import parts_in_force
from whygpu.launch.launch_plan import (
    SETTINGS_VARIABLE,
    Look,
    make_plan,
    needs_look,
    proves,
    settings_of,
)
from whygpu.launch.run_folder import REPORTS, SETTINGS, NoFolder, run_folder
from whygpu.model.codec import encode
from whygpu.model.finding import MACHINE
from whygpu.model.html_repr import html_repr
from whygpu.model.observed import Known
from whygpu.model.policy import DevicePolicy, LaunchPlan, ProcessRecord, Repair, RunReport
from whygpu.model.short_repr import short_repr
from whygpu.model.shortage import HopelessRequest
from whygpu.readers.allocator_state import Refusals

if TYPE_CHECKING:
    from whygpu.launch.program_process import Ended
    from whygpu.model.report import Report
    from whygpu.model.snapshot import Snapshot


class Prepared(NamedTuple):
    plan: LaunchPlan
    report: Report | None
    """What was found on the machine before the run; None if it was not examined."""
    named: frozenset[str]
    """The frameworks that the program's own file imports by name; empty if unknown."""

    def __repr__(self) -> str:
        return short_repr(self)

    def _repr_html_(self) -> str | None:
        return html_repr(self.plan)

    @property
    def because(self) -> str:
        """The root cause that keeps frameworks off the GPU, if it was found before the run."""
        if self.report is None:
            return ""
        mended = {repair.code for repair in self.plan.repairs}
        for finding in self.report.root_causes:
            if self.named and finding.subject not in (MACHINE, *self.named):
                continue
            if finding.effect != "none" and finding.code not in mended:
                return f" ({finding.code} {finding.cause}; `whygpu check` says more)"
        return ""

    def concerns(self, repair: Repair, imported: Collection[str] = ()) -> bool:
        """Whether a repair is for a framework that the program uses, as far as that is known."""
        known = {*self.named, *imported}
        return not known or repair.subject in (MACHINE, *known)


def prepare(
    argv: Sequence[str],
    policy: DevicePolicy,
    environ: Mapping[str, str],
    *,
    repair: bool = True,
    trace: bool = False,
    profile: bool = False,
) -> Prepared:
    """The plan for a command. The machine is examined if the plan depends on it."""
    selecting = policy.device is not None and bool(policy.device.gpus)
    reports: list[Report] = []
    unknown = command.chooses_environment(argv)

    def look(seen_with: Mapping[str, str]) -> Look:
        from whygpu.launch import preflight

        proving = proves(policy)
        python = command.interpreter_of(argv, environ)
        found = preflight.look(python, seen_with, selecting=selecting, proving=proving)
        report = _known_of(found.report, unknown)
        reports.append(report)

        def examine(other: Mapping[str, str]) -> Report:
            return _known_of(preflight.examine(python, other, proving=proving), unknown)

        return Look(report, found.ids, examine)

    repair = repair and not unknown
    named = command.frameworks_named(argv, environ)
    needed = needs_look(policy, environ, named, repair=repair, traps=_instruction_traps)
    asked = look if needed else None
    try:
        plan = make_plan(argv, policy, environ, asked, repair=repair, trace=trace, profile=profile)
    except PolicyError:
        raise
    except Exception as error:
        # If nothing in the policy depends on the machine, the program runs all the same.
        if policy.require_gpu or policy.device is not None:
            raise
        plan = make_plan(argv, policy, environ, None, repair=False, trace=trace, profile=profile)
        note = f"nothing is repaired, because the machine could not be examined: {error}"
        plan = plan._replace(notes=(note, *plan.notes))
    return Prepared(plan, reports[0] if reports else None, named)


def _instruction_traps() -> bool:
    """Whether an instruction that the processor lists fails here. Executed only on suspicion."""
    from whygpu.collectors import instructions
    from whygpu.collectors.system import processor
    from whygpu.host.local import LocalHost

    host = LocalHost()
    cpu = processor(host)
    if not instructions.suspected(cpu):
        return False
    from whygpu.causes.evidence.illegal_instructions import trapping

    found = trapping(instructions.tried(host, cpu))
    return isinstance(found, Known) and bool(found.value)


def _known_of(report: Report, target_unknown: bool) -> Report:
    """The part that applies to the program: if its environment is unknown, the machine only."""
    if not target_unknown:
        return report
    findings = tuple(finding for finding in report.findings if finding.subject == MACHINE)
    return report._replace(frameworks=(), findings=findings)


class Stage(NamedTuple):
    """What a process is started with, so that it follows the plan and leaves a record."""

    environ: dict[str, str]
    reports: str
    """The folder for the records of its processes."""

    def records(self) -> tuple[ProcessRecord, ...]:
        if not os.path.isdir(self.reports):
            return records.unreadable(FileNotFoundError("the program has removed the folder"))
        return records.read(self.reports)


@contextmanager
def staged(plan: LaunchPlan, environ: Mapping[str, str]) -> Iterator[Stage]:
    """Put the plan into effect for processes that are started with this environment."""
    try:
        with run_folder() as folder:
            reports = os.path.join(folder, REPORTS)
            os.mkdir(reports)
            settings = os.path.join(folder, SETTINGS)
            with open(settings, "w", encoding="ascii") as file:
                json.dump(encode(settings_of(plan)), file)
            given = changed(environ, plan.all_actions)
            given[SETTINGS_VARIABLE] = settings
            yield Stage(given, reports)
    except NoFolder as error:
        raise UsageError(
            f"no temporary folder can be made ({error}): set TMPDIR to a folder with room"
        ) from error


def execute(
    plan: LaunchPlan,
    environ: Mapping[str, str],
    at_end: Callable[[], None] = lambda: None,
    hopeless: Callable[[HopelessRequest], None] = lambda request: None,
) -> tuple[RunReport, Ended]:
    """Execute the plan. Raises NotStarted if the command cannot be started.

    `at_end` is called when the program has ended, before any signal can reach us again. `hopeless`
    is called, in another thread, when the program first asks for more GPU memory than it may have.
    """
    with staged(plan, environ) as stage:
        seen = _OutputWatch(_limit_of(plan), hopeless).see
        ended = program_process.run(plan.argv, stage.environ, at_end, seen)
        try:
            left = stage.records()
        except Exception as error:
            # The program has ended, and its exit code is returned whatever fails here.
            left = records.unreadable(error)
    device = records.device_used(left)
    if plan.trace and device == "cpu" and records.no_operation_ran(left):
        # PyTorch counts as used on the CPU when it is imported, TensorFlow when a session starts.
        device = "none"
    report = RunReport(
        exit_code=ended.code,
        device=device,
        fallback=device == "cpu" and _gpu_wanted(plan),
        policy=plan.policy,
        repairs=plan.repairs,
        peak_memory_bytes=records.peak_memory(left, device, ended.peak_memory_bytes),
        records=left,
        traced=plan.trace,
        in_force=parts_in_force(plan, left),
    )
    return report, ended


class _OutputWatch:
    """Reports the first request that can never be granted, between two lines of the output."""

    def __init__(self, limit: int | None, report: Callable[[HopelessRequest], None]) -> None:
        self._refusals = Refusals(limit)
        self._report = report
        self._found: HopelessRequest | None = None
        self._done = False

    def see(self, data: bytes) -> None:
        if self._done:
            return
        self._found = self._found or self._refusals.feed(data)
        if self._found is not None and data.endswith(b"\n"):
            self._done = True
            self._report(self._found)


def _limit_of(plan: LaunchPlan) -> int | None:
    """The most bytes that the plan allows TensorFlow on any GPU; None if it sets no limit."""
    for call in plan.calls:
        if call.framework == "tensorflow" and call.part == "memory":
            given = [call.arguments.get("bytes"), *call.arguments.get("bytes_by_gpu", ())]
            return max((each for each in given if each is not None), default=None)
    return None


def seen_by_program(
    plan: LaunchPlan, environ: Mapping[str, str], *, illegal_instruction: bool = False
) -> Snapshot:
    """The machine as the program saw it, with repairs and without private data.

    `illegal_instruction`: the program died of one, so each listed instruction set is tested.
    """
    from whygpu.host.local import LocalHost
    from whygpu.launch import preflight
    from whygpu.privacy import Redactor

    python = command.interpreter_of(plan.argv, environ)
    report = preflight.examine(python, changed(environ, plan.all_actions), proving=False)
    seen, host = report.snapshot, LocalHost()
    if illegal_instruction:
        from whygpu.collectors.instructions import with_trials

        seen = with_trials(host, seen)
    return Redactor(host.platform).value(seen)


def _gpu_wanted(plan: LaunchPlan) -> bool:
    """Whether work on the CPU is a fallback: a GPU was asked for, or one is there."""
    device = plan.policy.device
    if device is not None:
        return device.kind != "cpu"
    return plan.policy.require_gpu or plan.gpu_seen
