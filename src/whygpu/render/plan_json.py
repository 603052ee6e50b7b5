"""Plans as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from whygpu.model.codec import encode
from whygpu.planner.advice import Advice
from whygpu.planner.candidates import Candidate
from whygpu.planner.changes import Change
from whygpu.planner.constraints import Step
from whygpu.planner.machine import MachineSpec
from whygpu.planner.planning import Answer, Plan, Verdict

PLAN_SCHEMA = 1


def as_dict(
    answer: Answer, advice: Advice | None, changes: Sequence[Change], verified: str
) -> dict[str, Any]:
    return {
        "schema": PLAN_SCHEMA,
        "machine": encode(answer.machine),
        "plan": _plan_dict(answer.plan, advice, verified) if answer.plan and advice else None,
        "candidates": [_candidate_dict(verdict) for verdict in answer.candidates],
        "changes": [
            {"what": change.what, "packages": _packages(change.chosen)} for change in changes
        ],
        "unchecked": list(answer.unchecked),
    }


def _plan_dict(plan: Plan, advice: Advice, verified: str) -> dict[str, Any]:
    packages = [{"name": name, "version": version} for name, version in plan.solution.packages]
    return {
        "packages": packages,
        "commands": [*advice.preparations, *advice.commands, *advice.remedies],
        "notes": list(advice.notes),
        "verify": advice.verify,
        "verified": verified or None,
    }


def _candidate_dict(verdict: Verdict) -> dict[str, Any]:
    candidate = verdict.candidate
    return {
        "name": candidate.package,
        "version": candidate.version,
        "extra": candidate.extra or None,
        "fits": verdict.fits,
        "breaks": verdict.breaks,
        "reason": verdict.reason or "; ".join((*verdict.notes, *verdict.unchecked)),
    }


def _packages(chosen: Sequence[Candidate]) -> list[dict[str, str]]:
    return [{"name": item.package, "version": item.version} for item in chosen]


def render(answer: Answer, advice: Advice | None, changes: Sequence[Change], verified: str) -> str:
    data = as_dict(answer, advice, changes, verified)
    return json.dumps(data, indent=2) + "\n"


def render_chain(candidate: Candidate, chain: Sequence[Step], machine: MachineSpec) -> str:
    data = {
        "schema": PLAN_SCHEMA,
        "machine": encode(machine),
        "release": {"name": candidate.package, "version": candidate.version},
        "files": [part.file for part in candidate.parts],
        "fits": all(step.outcome != "breaks" for step in chain),
        "chain": [step._asdict() for step in chain],
    }
    return json.dumps(data, indent=2) + "\n"
