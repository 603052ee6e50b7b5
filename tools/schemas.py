"""Write the JSON schemas of what whygpu prints from the types that produce it."""

from __future__ import annotations

import json
import pathlib
import types
from typing import Any, Literal, Union, get_args, get_origin

import whygpu
from whygpu.model.batch import BatchResult
from whygpu.model.code_finding import FileProblemKind
from whygpu.model.codec import hints, is_record
from whygpu.model.comparison import ComparisonReport
from whygpu.model.differences import Basis, Difference, FrameworkChange, Side
from whygpu.model.estimate import MemoryEstimate
from whygpu.model.explanation import Guidance, LogVerdict
from whygpu.model.finding import Confidence, Effect, Evidence, Finding, Severity
from whygpu.model.fix import Applied, CopyFacts
from whygpu.model.fix import Result as AttemptResult
from whygpu.model.fleet import FleetReport
from whygpu.model.fleet_logs import FleetLogs
from whygpu.model.history import History
from whygpu.model.holders import HoldersReport
from whygpu.model.install_plan import FitCheck
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.memory_use import MemoryEnd
from whygpu.model.observed import Known
from whygpu.model.policy import Action, Call, DeviceUsed, LogLevel, PartState
from whygpu.model.profile import ProfileAnswer
from whygpu.model.report import STATUSES, FrameworkVerdict, MachineVerdict
from whygpu.model.requirement_file import Ability, FileFormat, ProblemKind
from whygpu.model.snapshot import Snapshot
from whygpu.model.standing import Standing
from whygpu.model.wire import FoldedOperation, Transfers
from whygpu.render.check_json import FINDING_FIELDS
from whygpu.render.compare_json import COMPARE_SCHEMA
from whygpu.render.diff_json import DIFF_SCHEMA
from whygpu.render.explain_json import EXPLANATION_SCHEMA, LOG_FINDING_FIELDS
from whygpu.render.fix_json import FIX_SCHEMA
from whygpu.render.fleet_json import FLEET_SCHEMA
from whygpu.render.fleet_logs_json import FLEET_LOGS_SCHEMA
from whygpu.render.history_json import HISTORY_SCHEMA
from whygpu.render.memory_estimate import ESTIMATE_SCHEMA
from whygpu.render.memory_find import FIND_SCHEMA
from whygpu.render.memory_holders import HOLDERS_SCHEMA
from whygpu.render.plan_json import PLAN_SCHEMA
from whygpu.render.requirements_json import PLAN_FROM_SCHEMA
from whygpu.render.rule_page import RULE_SCHEMA

FOLDER = pathlib.Path(whygpu.__path__[0]) / "schemas"
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of what the codec makes of a type; records go into `definitions`."""
    origin = get_origin(kind)
    if kind is Any:
        return {}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(get_args(kind)[1], definitions)}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if origin is Literal:
        return {"enum": list(get_args(kind))}
    if origin is tuple:
        arguments = get_args(kind)
        if arguments[1:] == (Ellipsis,):
            return {"type": "array", "items": schema_of(arguments[0], definitions)}
        items = [schema_of(argument, definitions) for argument in arguments]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if origin in (Union, types.UnionType):
        return _union(kind, definitions)
    if is_record(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}
            fields = {name: schema_of(hint, definitions) for name, hint in hints(kind)}
            definitions[kind.__name__] = _object(fields)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    raise TypeError(f"no schema for {kind}")


def _union(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    members = get_args(kind)
    known = next((member for member in members if get_origin(member) is Known), None)
    if known is None:
        (inner,) = (member for member in members if member is not type(None))
        return {"anyOf": [schema_of(inner, definitions), {"type": "null"}]}
    (inner,) = get_args(known)
    text = {"type": "string"}
    return {
        "oneOf": [
            _object({"known": schema_of(inner, definitions), "source": text}),
            _object({"absent": text}),
            _object({"unknown": text}),
        ]
    }


def _object(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def snapshot_schema() -> dict[str, Any]:
    definitions: dict[str, Any] = {}
    top = schema_of(Snapshot, definitions)
    return {"$schema": DRAFT, "title": "whygpu snapshot", **top, "$defs": definitions}


def _shown_remedy() -> dict[str, Any]:
    """A remedy as it is printed: its action has become a command."""
    command = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    return {"Remedy": _object({"text": {"type": "string"}, "command": command})}


def check_schema() -> dict[str, Any]:
    """What `whygpu check --json` prints."""
    definitions: dict[str, Any] = _shown_remedy()
    schema_of(Finding, definitions)
    fields = definitions["Finding"]["properties"]
    definitions["Finding"] = _object({name: fields[name] for name in FINDING_FIELDS})
    findings = {"type": "array", "items": {"$ref": "#/$defs/Finding"}}
    text = {"type": "string"}
    framework = _object(
        {
            "name": text,
            "version": text,
            "verdict": schema_of(FrameworkVerdict, definitions),
            "because": {"type": "array", "items": text},
        }
    )
    fields = {
        "schema": {"const": 1},
        "verdict": schema_of(MachineVerdict, definitions),
        "headline": text,
        "examined": text,
        "frameworks": {"type": "array", "items": framework},
        "root_causes": findings,
        "findings": findings,
        "outcomes": _object({name: {"type": "integer"} for name in STATUSES}),
        "undetermined": {"type": "array", "items": _object({"code": text, "reason": text})},
        "snapshot": schema_of(Snapshot, definitions),
    }
    top = _object(fields)
    return {"$schema": DRAFT, "title": "whygpu check --json", **top, "$defs": definitions}


def explain_schema() -> dict[str, Any]:
    """What `whygpu explain --json` prints; with several files, one on each line."""
    definitions: dict[str, Any] = _shown_remedy()
    schema_of(Finding, definitions)
    fields = definitions["Finding"]["properties"]
    definitions["Finding"] = _object({name: fields[name] for name in LOG_FINDING_FIELDS})
    findings = {"type": "array", "items": {"$ref": "#/$defs/Finding"}}
    text = {"type": "string"}
    fields = {
        "schema": {"const": EXPLANATION_SCHEMA},
        "name": text,
        "verdict": schema_of(LogVerdict, definitions),
        "headline": text,
        "root_causes": findings,
        "symptoms": findings,
        "noise": findings,
        "unexplained": {"type": "array", "items": schema_of(Evidence, definitions)},
        "crashed": {"type": "array", "items": text},
        "lines_read": {"type": "integer"},
        "guidance": schema_of(Guidance | None, definitions),
        "unread": text,
    }
    top = _object(fields)
    return {"$schema": DRAFT, "title": "whygpu explain --json", **top, "$defs": definitions}


def plan_schema() -> dict[str, Any]:
    """What `whygpu plan --json` prints."""
    definitions: dict[str, Any] = {}
    text = {"type": "string"}
    perhaps = {"type": ["string", "null"]}
    texts = {"type": "array", "items": text}
    packages = {"type": "array", "items": _object({"name": text, "version": text})}
    plan = _object(
        {
            "packages": packages,
            "commands": texts,
            "notes": texts,
            "verify": text,
            "verified": perhaps,
        }
    )
    candidate = _object(
        {
            "name": text,
            "version": text,
            "extra": perhaps,
            "index": perhaps,
            "fits": {"type": "boolean"},
            "breaks": perhaps,
            "reason": text,
        }
    )
    fields = {
        "schema": {"const": 1},
        "table": _TABLE_EDITION,
        "machine": schema_of(MachineSpec, definitions),
        "plan": {"anyOf": [plan, {"type": "null"}]},
        "candidates": {"type": "array", "items": candidate},
        "changes": {
            "type": "array",
            "items": _object({"what": text, "packages": packages, "doubt": _PERHAPS}),
        },
        "unchecked": texts,
    }
    return {
        "$schema": DRAFT,
        "title": "whygpu plan --json",
        **_object(fields),
        "$defs": definitions,
    }


_TABLE_EDITION = {
    "anyOf": [
        _object(
            {
                "date": {"type": "string"},
                "origin": {"enum": ["shipped", "updated"]},
                "unused": {"type": ["string", "null"]},
            }
        ),
        {"type": "null"},
    ]
}


def why_not_schema() -> dict[str, Any]:
    """What `whygpu plan --why-not RELEASE --json` prints."""
    definitions: dict[str, Any] = {}
    fields = {
        "schema": {"const": PLAN_SCHEMA},
        "table": _TABLE_EDITION,
        "machine": schema_of(MachineSpec, definitions),
        "release": _object({"name": _TEXT, "version": _TEXT}),
        "files": {"type": "array", "items": _TEXT},
        "fits": _FLAG,
        "chain": schema_of(tuple[FitCheck, ...], definitions),
    }
    title = "whygpu plan --why-not --json"
    return {"$schema": DRAFT, "title": title, **_object(fields), "$defs": definitions}


def rule_schema() -> dict[str, Any]:
    """What `whygpu rule --json` prints."""
    definitions: dict[str, Any] = {}
    texts = {"type": "array", "items": _TEXT}
    page = _object(
        {
            "code": _TEXT,
            "cause": _TEXT,
            "title": _TEXT,
            "severity": schema_of(Severity, definitions),
            "effect": schema_of(Effect, definitions),
            "explains": texts,
            "page": _TEXT,
            "examples": _PERHAPS,
            "proofs": texts,
        }
    )
    fields = {"schema": {"const": RULE_SCHEMA}, "causes": {"type": "array", "items": page}}
    return {"$schema": DRAFT, "title": "whygpu rule --json", **_object(fields)}


_TEXT = {"type": "string"}
_PERHAPS = {"type": ["string", "null"]}
_FLAG = {"type": "boolean"}


def _policy() -> dict[str, Any]:
    perhaps_off = {"enum": ["off", None]}
    return _object(
        {
            "device": _PERHAPS,
            "require": {"enum": ["gpu", None]},
            "memory": _PERHAPS,
            "cudnn": perhaps_off,
            "deterministic": _FLAG,
            "tf32": perhaps_off,
            "xla": perhaps_off,
            "log_level": {"enum": [*get_args(LogLevel), None]},
            "isolate": _FLAG,
            "tf1": _FLAG,
        }
    )


def run_schema() -> dict[str, Any]:
    """What `whygpu run --report FILE` writes."""
    definitions: dict[str, Any] = {}
    op = {
        "op": _TEXT,
        "device": _TEXT,
        "count": {"type": "integer"},
        "seconds": {"type": ["number", "null"]},
    }
    because = {"op": _TEXT, "reason": _TEXT, "detail": _TEXT}
    trace = {
        "ops": {"type": "array", "items": _object(op)},
        "on_cpu_because": {"type": "array", "items": _object(because)},
        "notes": {"type": "array", "items": _TEXT},
        "folded": schema_of(tuple[FoldedOperation, ...], definitions),
        "transfers": schema_of(tuple[Transfers, ...], definitions),
        "nothing_because": {"type": "array", "items": _TEXT},
    }
    fields = {
        "schema": {"const": 1},
        "exit_code": {"type": "integer"},
        "device": {"enum": list(get_args(DeviceUsed))},
        "fallback": _FLAG,
        "policy": _policy(),
        "in_force": schema_of(tuple[PartState, ...], definitions),
        "repairs": {
            "type": "array",
            "items": _object({"code": _TEXT, "what": _TEXT, "why": _TEXT}),
        },
        "peak_memory_bytes": {"type": ["integer", "null"]},
        "trace": {"anyOf": [_object(trace), {"type": "null"}]},
        "profile": _profile(definitions),
        "explanation": {"type": ["object", "null"]},
        "out_of_memory": schema_of(MemoryEnd | None, definitions),
        "notes": schema_of(tuple[str, ...], definitions),
    }
    title = "whygpu run --report"
    return {"$schema": DRAFT, "title": title, **_object(fields), "$defs": definitions}


def _profile(definitions: dict[str, Any]) -> dict[str, Any]:
    """With what is computed from the fields for the reader."""
    schema = schema_of(ProfileAnswer | None, definitions)
    for name, computed in (
        ("ProfileAnswer", {"headline": _TEXT}),
        ("StepWindow", {"step_seconds": {"type": "number"}}),
    ):
        definitions[name] = _object({**computed, **definitions[name]["properties"]})
    return schema


def run_plan_schema() -> dict[str, Any]:
    """What `whygpu run --dry-run --json` prints."""
    definitions: dict[str, Any] = {}
    actions = {"type": "array", "items": schema_of(Action, definitions)}
    repair = {"code": _TEXT, "what": _TEXT, "why": _TEXT, "actions": actions}
    fields = {
        "schema": {"const": 1},
        "argv": {"type": "array", "items": _TEXT},
        "policy": _policy(),
        "actions": actions,
        "calls": {"type": "array", "items": schema_of(Call, definitions)},
        "repairs": {"type": "array", "items": _object(repair)},
        "notes": {"type": "array", "items": _TEXT},
    }
    return {
        "$schema": DRAFT,
        "title": "whygpu run --dry-run --json",
        **_object(fields),
        "$defs": definitions,
    }


def diff_schema() -> dict[str, Any]:
    """What `whygpu diff --json` prints."""
    definitions: dict[str, Any] = {}
    places = {"type": "array", "items": {"type": "integer"}}
    reason = _object(
        {
            "code": _PERHAPS,
            "cause": _PERHAPS,
            "severity": schema_of(Severity | None, definitions),
            "message": _TEXT,
            "subjects": {"type": "array", "items": _TEXT},
            "present": {"enum": ["before", "after"]},
            "sets": {"type": "array", "items": places},
            "basis": schema_of(Basis, definitions),
            "certainly_all": _FLAG,
            "unexplained": _TEXT,
            "suspects": places,
        }
    )
    difference = {name: schema_of(kind, definitions) for name, kind in hints(Difference)}
    fields = {
        "schema": {"const": DIFF_SCHEMA},
        "standing": schema_of(Standing, definitions),
        "headline": _TEXT,
        "before": schema_of(Side, definitions),
        "after": schema_of(Side, definitions),
        "frameworks": schema_of(tuple[FrameworkChange, ...], definitions),
        "reasons": {"type": "array", "items": reason},
        "differences": {"type": "array", "items": _object({**difference, "explains": _FLAG})},
        "notes": {"type": "array", "items": _TEXT},
        "trials": {"type": "integer"},
    }
    top = _object(fields)
    return {"$schema": DRAFT, "title": "whygpu diff --json", **top, "$defs": definitions}


def history_schema() -> dict[str, Any]:
    """What `whygpu history --json` prints."""
    definitions: dict[str, Any] = {}
    fields = {name: schema_of(kind, definitions) for name, kind in hints(History)}
    top = _object({"schema": {"const": HISTORY_SCHEMA}, **fields})
    return {"$schema": DRAFT, "title": "whygpu history --json", **top, "$defs": definitions}


def fix_schema() -> dict[str, Any]:
    """What `whygpu fix --json` prints."""
    definitions: dict[str, Any] = {}
    texts = {"type": "array", "items": _TEXT}
    step = _object(
        {
            "code": _TEXT,
            "cause": _TEXT,
            "subject": _TEXT,
            "text": _TEXT,
            "command": _PERHAPS,
            "by_hand": _TEXT,
        }
    )
    framework = _object(
        {
            "name": _TEXT,
            "version": _TEXT,
            "verdict": schema_of(FrameworkVerdict, definitions),
            "because": texts,
        }
    )
    cause = _object(
        {
            "code": _TEXT,
            "cause": _TEXT,
            "subject": _TEXT,
            "severity": schema_of(Severity, definitions),
        }
    )
    state = _object(
        {
            "verdict": schema_of(MachineVerdict, definitions),
            "headline": _TEXT,
            "frameworks": {"type": "array", "items": framework},
            "root_causes": {"type": "array", "items": cause},
        }
    )
    attempt = _object(
        {
            "step": step,
            "result": schema_of(AttemptResult, definitions),
            "detail": _TEXT,
            "seconds": {"type": "number"},
            "download_bytes": {"type": ["integer", "null"]},
        }
    )
    fields = {
        "schema": {"const": FIX_SCHEMA},
        "environment": _TEXT,
        "refused": _TEXT,
        "proven": _FLAG,
        "applied": schema_of(Applied | None, definitions),
        "before": state,
        "after": {"anyOf": [state, {"type": "null"}]},
        "steps": {"type": "array", "items": step},
        "by_hand": {"type": "array", "items": step},
        "attempts": {"type": "array", "items": attempt},
        "copy": schema_of(CopyFacts | None, definitions),
    }
    top = _object(fields)
    return {"$schema": DRAFT, "title": "whygpu fix --json", **top, "$defs": definitions}


def fleet_schema() -> dict[str, Any]:
    """What `whygpu fleet report --json` prints."""
    definitions: dict[str, Any] = _shown_remedy()
    schema_of(Finding, definitions)
    finding = definitions["Finding"]["properties"]
    definitions["Finding"] = _object({name: finding[name] for name in FINDING_FIELDS})
    definitions["Example"] = _object({"node": _TEXT, "finding": {"$ref": "#/$defs/Finding"}})
    fields = {name: schema_of(hint, definitions) for name, hint in hints(FleetReport)}
    top = _object({"schema": {"const": FLEET_SCHEMA}, **fields})
    return {"$schema": DRAFT, "title": "whygpu fleet report --json", **top, "$defs": definitions}


def fleet_explain_schema() -> dict[str, Any]:
    """What `whygpu fleet explain --json` prints."""
    definitions: dict[str, Any] = _shown_remedy()
    schema_of(Finding, definitions)
    finding = definitions["Finding"]["properties"]
    definitions["Finding"] = _object({name: finding[name] for name in LOG_FINDING_FIELDS})
    definitions["LogExample"] = _object({"file": _TEXT, "finding": {"$ref": "#/$defs/Finding"}})
    fields = {name: schema_of(hint, definitions) for name, hint in hints(FleetLogs)}
    top = _object({"schema": {"const": FLEET_LOGS_SCHEMA}, **fields})
    return {"$schema": DRAFT, "title": "whygpu fleet explain --json", **top, "$defs": definitions}


def lint_schema() -> dict[str, Any]:
    """What `whygpu lint --json` prints."""
    definitions: dict[str, Any] = {}
    text, number = {"type": "string"}, {"type": "integer"}
    finding = {
        "code": text,
        "cause": text,
        "path": text,
        "line": number,
        "column": number,
        "message": text,
        "fixable": {"type": "boolean"},
        "severity": schema_of(Severity, definitions),
        "confidence": schema_of(Confidence, definitions),
        "fix": text,
        "end_line": number,
        "end_column": number,
        "cell": {"type": ["integer", "null"]},
    }
    problem = {
        "path": text,
        "line": number,
        "kind": schema_of(FileProblemKind, definitions),
        "message": text,
        "cell": {"type": ["integer", "null"]},
    }
    fields = {
        "schema": {"const": 1},
        "findings": {"type": "array", "items": _object(finding)},
        "ignored": {"type": "array", "items": _object({**finding, "reason": text})},
        "problems": {"type": "array", "items": _object(problem)},
        "files": number,
        "fixed": number,
        "fixes": {"type": "array", "items": _object({"path": text, "code": text, "cause": text})},
        "left_out": number,
        "templates": number,
    }
    return {"$schema": DRAFT, "title": "whygpu lint --json", **_object(fields)}


def memory_schema() -> dict[str, Any]:
    """What `whygpu memory --json` prints."""
    definitions: dict[str, Any] = {}
    fields = {name: schema_of(hint, definitions) for name, hint in hints(HoldersReport)}
    top = _object({"schema": {"const": HOLDERS_SCHEMA}, **fields})
    return {"$schema": DRAFT, "title": "whygpu memory --json", **top, "$defs": definitions}


def find_schema() -> dict[str, Any]:
    """What `whygpu memory find --json` prints."""
    definitions: dict[str, Any] = {}
    schema_of(BatchResult, definitions)
    fields = {"schema": {"const": FIND_SCHEMA}, **definitions.pop("BatchResult")["properties"]}
    return {
        "$schema": DRAFT,
        "title": "whygpu memory find --json",
        **_object(fields),
        "$defs": definitions,
    }


def compare_schema() -> dict[str, Any]:
    """What `whygpu compare --json` prints."""
    definitions: dict[str, Any] = {}
    fields = {name: schema_of(hint, definitions) for name, hint in hints(ComparisonReport)}
    top = _object({"schema": {"const": COMPARE_SCHEMA}, **fields})
    return {"$schema": DRAFT, "title": "whygpu compare --json", **top, "$defs": definitions}


def plan_from_schema() -> dict[str, Any]:
    """What `whygpu plan --from FILE --json` prints."""
    definitions: dict[str, Any] = {}
    text = {"type": "string"}
    perhaps = {"type": ["string", "null"]}
    number = {"type": "integer"}
    edit = _object({"file": text, "line": number, "replacement": text})
    place = {"file": text, "line": number, "text": text}
    requirement = _object(
        {
            **place,
            "name": text,
            "group": perhaps,
            "ability": schema_of(Ability, definitions),
            "kind": {"enum": [*get_args(ProblemKind), None]},
            "reason": text,
            "is_alternative": {"type": "boolean"},
            "edits": {"type": "array", "items": edit},
            "advice": perhaps,
        }
    )
    fields = {
        "schema": {"const": PLAN_FROM_SCHEMA},
        "table": _TABLE_EDITION,
        "machine": schema_of(MachineSpec, definitions),
        "file": text,
        "format": schema_of(FileFormat, definitions),
        "requirements": {"type": "array", "items": requirement},
        "unread": {"type": "array", "items": _object({**place, "reason": text})},
        "unchecked": {"type": "array", "items": text},
    }
    title = "whygpu plan --from --json"
    return {"$schema": DRAFT, "title": title, **_object(fields), "$defs": definitions}


def memory_estimate_schema() -> dict[str, Any]:
    """What `whygpu memory estimate --json` prints."""
    definitions: dict[str, Any] = {}
    fields = {name: schema_of(hint, definitions) for name, hint in hints(MemoryEstimate)}
    total = {"total_bytes": {"type": ["integer", "null"]}}
    top = _object({"schema": {"const": ESTIMATE_SCHEMA}, **fields, **total})
    title = "whygpu memory estimate --json"
    return {"$schema": DRAFT, "title": title, **top, "$defs": definitions}


def files() -> dict[str, str]:
    made = {
        "snapshot.schema.json": snapshot_schema(),
        "check.schema.json": check_schema(),
        "explain.schema.json": explain_schema(),
        "plan.schema.json": plan_schema(),
        "plan-why-not.schema.json": why_not_schema(),
        "rule.schema.json": rule_schema(),
        "diff.schema.json": diff_schema(),
        "history.schema.json": history_schema(),
        "fix.schema.json": fix_schema(),
        "fleet.schema.json": fleet_schema(),
        "fleet-explain.schema.json": fleet_explain_schema(),
        "plan-from.schema.json": plan_from_schema(),
        "lint.schema.json": lint_schema(),
        "compare.schema.json": compare_schema(),
        "memory-find.schema.json": find_schema(),
        "memory.schema.json": memory_schema(),
        "memory-estimate.schema.json": memory_estimate_schema(),
        "run.schema.json": run_schema(),
        "run-plan.schema.json": run_plan_schema(),
    }
    return {name: json.dumps(schema, indent=1) + "\n" for name, schema in made.items()}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
