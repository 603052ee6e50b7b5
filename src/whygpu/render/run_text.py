"""A run for people: the plan before it, and the line after it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress

from whygpu.model.derived import and_list, display_name
from whygpu.model.observed import Known
from whygpu.model.policy import Action, Call, LaunchPlan, PartState, Repair, RunReport
from whygpu.model.shell import joined, quoted
from whygpu.model.units import size_text


def plan_text(plan: LaunchPlan) -> str:
    """What `--dry-run` prints: every difference from the bare command, each with its reason."""
    lines = [f"would run  {joined(plan.argv)}", ""]
    if plan.actions:
        lines.append("changes, for this program and what it starts:")
        lines += _action_lines(plan.actions)
    if plan.calls:
        lines += ["", "calls inside the program, after the import of each framework:"]
        for call in plan.calls:
            lines += [f"  {call_text(call)}", f"      {call.reason}"]
    lines += ["", "repairs:" if plan.repairs else "repairs: none"]
    for repair in plan.repairs:
        lines.append(f"  {repair.code}  {repair.what}")
        lines.append(f"         {repair.why}")
    if plan.remarks:
        lines += ["", "notes:"]
        lines += [f"  {note}" for note in plan.remarks]
    return "\n".join(lines) + "\n"


def _action_lines(actions: tuple[Action, ...]) -> Iterator[str]:
    for action in actions:
        yield f"  {action_text(action)}"
        yield f"      {action.reason}"


def action_text(action: Action) -> str:
    name, value = action.name, quoted(action.value)
    return {
        "set": f"{name}={value}",
        "unset": f"unset {name}",
        "keep": f"{name}: {action.value}",
        "prepend": f"{name}={value}:...",
        "remove": f"{name} without {value}",
        "add-flag": f"{name} with {value}",
    }[action.kind]


def call_text(call: Call) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return f"{call.framework}: {call.name}({arguments})"


def in_force_lines(report: RunReport) -> Iterator[str]:
    """Which parts of the policy were in force, and for those that were not: what shows it."""
    for state, title in _STATES:
        parts = [each for each in report.in_force if each.state == state]
        if state == "in-force":
            named = [f"{each.part} ({display_name(each.framework)})" for each in parts]
        else:
            named = [f"{each.part} ({shown_by(each)})" for each in parts]
        if named:
            yield f"{title}: {', '.join(named)}"


_STATES = (
    ("not-in-force", "policy NOT in force"),
    ("cannot-tell", "policy, cannot tell whether in force"),
    ("in-force", "policy in force at the end"),
)


def shown_by(part: PartState) -> str:
    name = display_name(part.framework)
    if part.reason:
        return part.reason if name in part.reason else f"{name}: {part.reason}"
    reported = [f"{each.name} = {each.reported!r}" for each in part.readings if not each.fits]
    return f"{name} reports {and_list(reported)}"


def repair_text(repair: Repair) -> str:
    return f"repaired for this run: {repair.what}: {repair.why} ({repair.code})"


def end_text(report: RunReport, because: str = "") -> str:
    """The one line after a run: device, peak memory, fallback or not."""
    if report.device == "none":
        return f"{_seen(report)} exit code {report.exit_code}"
    where = "GPU" if report.device == "gpu" else "CPU"
    parts = [f"ran on the {where}{_by(report)}"]
    if not _complete(report):
        parts.append(f"as last reported before {_ending(report)}")
    peak = report.peak_memory_bytes
    if isinstance(peak, Known):
        kind = "GPU memory" if report.device == "gpu" else "memory"
        parts.append(f"peak {kind} {size_text(peak.value)}")
    if report.fallback:
        parts.append(f"a fallback: the GPU was not used{because}")
    elif report.device == "gpu":
        parts.append("no fallback")
    return "; ".join(parts)


def _seen(report: RunReport) -> str:
    names = dict.fromkeys(
        f"{display_name(use.name)} {use.version}"
        for record in report.records
        for use in record.frameworks
    )
    if not names:
        return "no process reported a deep-learning framework;"
    if not _complete(report):
        return f"{and_list(list(names))} had reported no work on a device when {_ending(report)};"
    verb = "was" if len(names) == 1 else "were"
    if report.traced:
        return f"{and_list(list(names))} {verb} imported, and no operation was seen;"
    return f"{and_list(list(names))} {verb} imported and used no device;"


def _complete(report: RunReport) -> bool:
    return all(record.complete for record in report.records)


def _ending(report: RunReport) -> str:
    """What kept a process from writing its record at its end."""
    with suppress(ValueError):
        return f"{signal.Signals(report.exit_code - 128).name} ended it"
    return "a process ended without Python's exit handlers"


def _by(report: RunReport) -> str:
    """Which frameworks ran there, with the GPUs."""
    used: dict[str, list[str]] = {}
    for record in report.records:
        for use in record.frameworks:
            there = [device for device in use.devices if device.startswith(report.device)]
            if there:
                known = used.setdefault(f"{display_name(use.name)} {use.version}", [])
                known += [device for device in there if device not in known]
    named = [
        f"{name} on {', '.join(sorted(devices))}" if report.device == "gpu" else name
        for name, devices in used.items()
    ]
    return f" ({and_list(named)})" if named else ""
