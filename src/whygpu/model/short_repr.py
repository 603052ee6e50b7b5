"""How a report shows itself in Python: one line with the answer, and HTML in a notebook.

The fields of a report are meant to be read one by one. All together would fill the screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from whygpu.model.figures import first_of
from whygpu.model.html_repr import html_repr
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.outside_text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whygpu.model.batch import BatchResult
    from whygpu.model.code_finding import LintReport, SourcePatch
    from whygpu.model.comparison import ComparisonReport
    from whygpu.model.differences import DiffAnswer
    from whygpu.model.estimate import MemoryEstimate
    from whygpu.model.explanation import Explanation
    from whygpu.model.finding import Finding
    from whygpu.model.fix import FixAnswer, Undone
    from whygpu.model.fleet import FleetReport
    from whygpu.model.fleet_logs import FleetLogs
    from whygpu.model.holders import GpuMemory, HoldersReport
    from whygpu.model.install_plan import PlanAnswer, ReleaseAnswer
    from whygpu.model.overview import Overview
    from whygpu.model.policy import LaunchPlan, RunReport
    from whygpu.model.profile import ProfileAnswer
    from whygpu.model.report import Report
    from whygpu.model.requirement_file import FileAnswer
    from whygpu.model.snapshot import Snapshot

LONGEST = 240
"""In characters: about three lines of a terminal."""
_MOST_NAMED = 3


Kind = TypeVar("Kind")


def shows_itself(kind: type[Kind]) -> type[Kind]:
    """For the class of every report that a verb returns."""
    kind.__repr__ = short_repr  # type: ignore[method-assign]
    kind._repr_html_ = html_repr  # type: ignore[attr-defined]
    return kind


def short_repr(report: Any) -> str:
    """<Report: the answer in a few words>."""
    name = type(report).__name__
    text = one_line(" ".join(_TEXTS[name](report).split()))
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - 4].rpartition(' ')[0]} ..."
    return f"<{name}: {text}>"


def _report(report: Report) -> str:
    interpreter = report.snapshot.target.interpreter
    where = f"; seen with {interpreter.value.path}" if isinstance(interpreter, Known) else ""
    serious = [finding for finding in report.root_causes if finding.severity != "info"]
    problems = f"; {_count(len(serious), 'problem')}: {_named(serious)}" if serious else ""
    return f"{_sentence(report.headline)}{problems}{where}"


def _explanation(explanation: Explanation) -> str:
    roots = explanation.root_causes
    label = "root cause" if len(roots) == 1 else "root causes"
    return _sentence(explanation.headline) + (f"; {label}: {_named(roots)}" if roots else "")


def _diff(answer: DiffAnswer) -> str:
    return f"{_sentence(answer.headline)}; {_count(len(answer.differences), 'difference')}"


def _named(findings: Sequence[Finding]) -> str:
    return first_of(
        list(dict.fromkeys(f"{found.code} {found.cause}" for found in findings)), _MOST_NAMED
    )


def _snapshot(snapshot: Snapshot) -> str:
    from whygpu.model.derived import nvidia_gpu

    frameworks = snapshot.target.frameworks
    gpu = _known(nvidia_gpu(snapshot), "no NVIDIA GPU")
    installed = "frameworks unknown"
    if isinstance(frameworks, Known):
        installed = first_of([f"{each.name} {each.version}" for each in frameworks.value], 6)
    taken = f"taken {snapshot.taken} on {snapshot.system.os}"
    probes = _count(len(snapshot.probes), "probe")
    return f"{taken}; {gpu}; {installed or 'no frameworks'}; {probes}"


def _fix(answer: FixAnswer) -> str:
    state = "not proven" if answer.after is None else "proven in a copy"
    if answer.applied is not None:
        state = "applied"
    if answer.refused:
        state = answer.refused
    now = answer.before if answer.applied is None or answer.after is None else answer.after
    return f"{_sentence(now.headline)}; {_count(len(answer.steps), 'step')}, {state}"


def _file(answer: FileAnswer) -> str:
    counts = {
        "cannot use the GPU": answer.having("cannot"),
        "cannot tell": answer.having("unknown"),
        "can use the GPU": answer.having("can"),
    }
    parts = [
        f"{says}: {first_of([verdict.requirement.name for verdict in found], _MOST_NAMED)}"
        for says, found in counts.items()
        if found
    ]
    return f"{answer.file.path}; {'; '.join(parts) or 'names no framework that whygpu knows'}"


def _fleet(report: FleetReport) -> str:
    verdicts = [f"{count.nodes:,} {count.verdict}" for count in report.verdicts]
    if report.lost:
        verdicts.append(f"{len(report.lost):,} lost")
    causes = [f"{group.code} {group.cause} ({len(group.nodes):,})" for group in report.causes]
    found = f"; {first_of(causes, _MOST_NAMED)}" if causes else ""
    return f"{_count(report.nodes, 'node')}: {', '.join(verdicts)}{found}"


def _fleet_logs(report: FleetLogs) -> str:
    verdicts = [f"{count.jobs:,} {count.verdict}" for count in report.verdicts]
    if report.unread_files:
        verdicts.append(f"{report.unread_files:,} unread")
    causes = [f"{group.code} {group.cause} ({group.jobs:,})" for group in report.causes]
    found = f"; {first_of(causes, _MOST_NAMED)}" if causes else ""
    return f"{_count(report.files, 'log')}: {', '.join(verdicts)}{found}"


def _lint(report: LintReport) -> str:
    codes = dict.fromkeys(found.finding.code for found in report.findings)
    found = f": {first_of(list(codes), _MOST_NAMED)}" if codes else ""
    parts = [f"{_count(len(report.findings), 'finding')} in {_count(report.files, 'file')}{found}"]
    if report.fixed:
        parts.append(f"{report.fixed} fixed")
    if report.problems:
        parts.append(f"{_count(len(report.problems), 'problem')} with reading files")
    return "; ".join(parts)


def _patch(patch: SourcePatch) -> str:
    changed = patch.content.count(b"\n+++ ")
    return f"changes {_count(changed, 'file')}" if changed else "nothing to change"


def _holders(report: HoldersReport) -> str:
    if isinstance(report.gpus, Known):
        return "; ".join(map(_gpu_memory, report.gpus.value))
    return _known(report.gpus, "no NVIDIA GPU")


def _gpu_memory(gpu: GpuMemory) -> str:
    free = _size(gpu.free_bytes)
    total = _size(gpu.total_bytes)
    held = _count(sum(holder.pid is not None for holder in gpu.holders), "process", "processes")
    return f"GPU {gpu.number}, {gpu.name}: {free} free of {total}, {held}"


def _estimate(estimate: MemoryEstimate) -> str:
    total = estimate.total_bytes
    if estimate.at is None or total is None:
        return f"cannot tell what {estimate.what} takes: {estimate.why}"
    room = estimate.room.where if estimate.room is not None else ""
    fits = {
        "fits": f"; fits {room}",
        "does-not-fit": f"; does not fit {room}",
        "not-asked": "",
        "unknown": f"; cannot tell whether it fits: {estimate.why}",
    }[estimate.verdict]
    largest = f"; largest batch {estimate.largest.batch}" if estimate.largest is not None else ""
    taken = f"{estimate.what} takes {_bytes(total)} with batch {estimate.at.batch}"
    return f"{taken}{fits}{largest}"


def _batch(result: BatchResult) -> str:
    if result.batch is None:
        return f"no batch of {result.what} is known to be safe ({result.outcome})"
    return f"batch {result.batch} for {result.what} on {result.device} ({result.outcome})"


def _comparison(report: ComparisonReport) -> str:
    return f"{report.what}: {_sentence(report.headline)}"


def _plan(answer: PlanAnswer) -> str:
    from whygpu.model.commands import shell_texts

    if answer.plan is None:
        changes = [change.what for change in answer.changes]
        why = answer.gave_up or answer.conflict or "no release fits this machine"
        return f"no plan: {why}" + (
            f"; possible with {first_of(changes, _MOST_NAMED)}" if changes else ""
        )
    chosen = [f"{item.package} {item.version}" for item in answer.plan.chosen]
    advice = answer.advice
    commands = shell_texts(advice.installs, advice.installer, advice.shell) if advice else ()
    state = {"fine": "fits", "attention": "fits, with a remedy", "wrong": "was refuted"}
    fit = state.get(answer.standing, "fits what is known about the machine")
    return f"{', '.join(chosen)} {fit}" + (f"; {commands[0]}" if commands else "")


def _release(answer: ReleaseAnswer) -> str:
    name = f"{answer.candidate.package} {answer.candidate.version}"
    broken = [f"it {step.reason}" for step in answer.chain if step.outcome == "breaks"]
    if broken:
        return f"{name} does not fit: {first_of(broken, _MOST_NAMED)}"
    known = "fits" if answer.standing == "fine" else "fits what is known about the machine"
    return f"{name} {known}"


def _launch(plan: LaunchPlan) -> str:
    changes, repairs = _count(len(plan.actions), "change"), _count(len(plan.repairs), "repair")
    return f"{' '.join(plan.argv)}; {changes}, {repairs}"


def _prepared(prepared: Any) -> str:
    return _launch(prepared.plan)


def _profile(answer: ProfileAnswer) -> str:
    return answer.headline


def _run(report: RunReport) -> str:
    device = {"gpu": "ran on the GPU", "cpu": "ran on the CPU", "none": "used no device"}
    parts = [device[report.device], f"exit code {report.exit_code}"]
    if isinstance(report.peak_memory_bytes, Known):
        parts.append(f"peak {_bytes(report.peak_memory_bytes.value)}")
    if report.explanation is not None:
        parts.append(_explanation(report.explanation))
    return "; ".join(parts)


def _overview(overview: Overview) -> str:
    return _report(overview.check)


def _undone(undone: Undone) -> str:
    return f"{undone.environment} is again as it was before the fix of {undone.applied_at}"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "PlanAnswer": _plan,
    "BatchResult": _batch,
    "ComparisonReport": _comparison,
    "DiffAnswer": _diff,
    "Explanation": _explanation,
    "FileAnswer": _file,
    "FixAnswer": _fix,
    "FleetLogs": _fleet_logs,
    "FleetReport": _fleet,
    "HoldersReport": _holders,
    "LaunchPlan": _launch,
    "LintReport": _lint,
    "MemoryEstimate": _estimate,
    "Overview": _overview,
    "Prepared": _prepared,
    "ProfileAnswer": _profile,
    "ReleaseAnswer": _release,
    "Report": _report,
    "RunReport": _run,
    "Snapshot": _snapshot,
    "SourcePatch": _patch,
    "Undone": _undone,
}


def _sentence(text: str) -> str:
    return text.rstrip(". ")


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number or 'no'} {one if number == 1 else many or f'{one}s'}"


def _known(fact: Observed[str], absent: str) -> str:
    if isinstance(fact, Known):
        return fact.value
    return f"unknown: {fact.reason}" if isinstance(fact, Unknown) else absent


def _size(fact: Observed[int]) -> str:
    return _bytes(fact.value) if isinstance(fact, Known) else "an unknown amount"


def _bytes(count: int) -> str:
    from whygpu.model.units import size_text

    return size_text(count)
