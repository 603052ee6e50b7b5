"""Launch plans and run reports as JSON."""

from __future__ import annotations

import json
from typing import Any

from whygpu.model.codec import encode
from whygpu.model.observed import Known
from whygpu.model.policy import DevicePolicy, LaunchPlan, Repair, RunReport
from whygpu.render.explain_json import as_dict
from whygpu.render.profile_text import profile_dict
from whygpu.render.run_memory import memory_dict

RUN_SCHEMA = 1
TRACE_FIELDS = ("ops", "on_cpu_because", "notes", "folded", "transfers", "nothing_because")


def plan_json(plan: LaunchPlan) -> str:
    """What `whygpu run --dry-run --json` prints."""
    data = {
        "schema": RUN_SCHEMA,
        "argv": list(plan.argv),
        "policy": policy_dict(plan.policy),
        "actions": [action._asdict() for action in plan.actions],
        "calls": [call._asdict() for call in plan.calls],
        "repairs": [
            {**_repair(repair), "actions": [action._asdict() for action in repair.actions]}
            for repair in plan.repairs
        ],
        "notes": list(plan.remarks),
    }
    return json.dumps(data, indent=2) + "\n"


def report_json(report: RunReport, trace: dict[str, Any] | None) -> str:
    """What `whygpu run --report FILE` writes. `trace` has `ops` and `on_cpu_because`."""
    peak = report.peak_memory_bytes
    data = {
        "schema": RUN_SCHEMA,
        "exit_code": report.exit_code,
        "device": report.device,
        "fallback": report.fallback,
        "policy": policy_dict(report.policy),
        "in_force": encode(report.in_force),
        "repairs": [_repair(repair) for repair in report.repairs],
        "peak_memory_bytes": peak.value if isinstance(peak, Known) else None,
        "trace": None if trace is None else {name: trace[name] for name in TRACE_FIELDS},
        "profile": None if report.profile is None else profile_dict(report.profile),
        "explanation": None if report.explanation is None else as_dict(report.explanation),
        "out_of_memory": (
            memory_dict(report.out_of_memory) if report.out_of_memory is not None else None
        ),
        "notes": list(report.notes),
    }
    return json.dumps(data, indent=2) + "\n"


def _repair(repair: Repair) -> dict[str, str]:
    return {"code": repair.code, "what": repair.what, "why": repair.why}


def policy_dict(policy: DevicePolicy) -> dict[str, Any]:
    """The policy in the words of its options; null for what it does not set."""
    device, memory = policy.device, policy.memory
    words = None
    if device is not None:
        words = device.kind + (f":{','.join(device.gpus)}" if device.gpus else "")
    amount = None
    if memory is not None:
        amount = {
            "growth": "growth",
            "bytes": f"{memory.amount:.0f}B",
            "fraction": f"{memory.amount * 100:g}%",
        }[memory.kind]
    return {
        "device": words,
        "require": "gpu" if policy.require_gpu else None,
        "memory": amount,
        "cudnn": "off" if policy.cudnn_off else None,
        "deterministic": policy.deterministic,
        "tf32": "off" if policy.tf32_off else None,
        "xla": "off" if policy.xla_off else None,
        "log_level": policy.log_level,
        "isolate": policy.isolate,
        "tf1": policy.tf1,
    }
