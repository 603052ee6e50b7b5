"""Plans as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.commands import shell_texts
from whygpu.model.install_plan import (
    Advice,
    Candidate,
    Plan,
    PlanAnswer,
    ReleaseAnswer,
    ReleaseVerdict,
    TableEdition,
)
from whygpu.render.plan_text import AFTERWARDS

PLAN_SCHEMA = 1


def as_dict(answer: PlanAnswer) -> dict[str, Any]:
    plan, advice = answer.plan, answer.advice
    return {
        "schema": PLAN_SCHEMA,
        "table": table_dict(answer.table),
        "machine": encode(answer.machine),
        "plan": _plan_dict(plan, advice, answer.verified) if plan and advice else None,
        "candidates": [_candidate_dict(verdict) for verdict in answer.candidates],
        "changes": [
            {
                "what": change.what,
                "packages": _packages(change.chosen),
                "doubt": change.doubt or None,
            }
            for change in answer.changes
        ],
        "unchecked": list(answer.unchecked),
    }


def table_dict(edition: TableEdition | None) -> dict[str, Any] | None:
    if edition is None:
        return None
    return {**edition._asdict(), "unused": edition.unused or None}


def _plan_dict(plan: Plan, advice: Advice, verified: str) -> dict[str, Any]:
    packages = [{"name": name, "version": version} for name, version in plan.solution.packages]
    actions = (*advice.preparations, *advice.installs, *advice.remedies)
    return {
        "packages": packages,
        "commands": list(shell_texts(actions, advice.installer, advice.shell)),
        "notes": list(advice.notes),
        "verify": AFTERWARDS,
        "verified": verified or None,
    }


def _candidate_dict(verdict: ReleaseVerdict) -> dict[str, Any]:
    candidate = verdict.candidate
    return {
        "name": candidate.package,
        "version": candidate.version,
        "extra": candidate.extra or None,
        "index": candidate.torch_index or None,
        "fits": verdict.fits,
        "breaks": verdict.breaks,
        "reason": verdict.reason or "; ".join((*verdict.notes, *verdict.unchecked)),
    }


def _packages(chosen: Sequence[Candidate]) -> list[dict[str, str]]:
    return [{"name": item.package, "version": item.version} for item in chosen]


def render(answer: PlanAnswer) -> str:
    return json.dumps(as_dict(answer), indent=2) + "\n"


def render_chain(answer: ReleaseAnswer) -> str:
    candidate = answer.candidate
    data = {
        "schema": PLAN_SCHEMA,
        "table": table_dict(answer.table),
        "machine": encode(answer.machine),
        "release": {"name": candidate.package, "version": candidate.version},
        "files": [part.file for part in candidate.parts],
        "fits": not answer.broken,
        "chain": [check._asdict() for check in answer.chain],
    }
    return json.dumps(data, indent=2) + "\n"
