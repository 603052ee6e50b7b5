"""Helpers for tests: a machine that differs from a healthy one, and the examples of a page."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin

from tests.machines import healthy as machines
from whygpu.api import source as source_verb
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import outcome_of
from whygpu.diagnosis.explainer import explain
from whygpu.linter.judge import judge, relevant, words_in
from whygpu.linter.project_files import GivenFiles
from whygpu.linter.settings import Settings
from whygpu.linter.setup_file import analyse_setup
from whygpu.linter.text_words import TextWords
from whygpu.model.cause import Cause
from whygpu.model.code_finding import CodeFinding
from whygpu.model.codec import decode, encode, hints, is_record
from whygpu.model.commands import shell_text
from whygpu.model.deployment import SetupFinding
from whygpu.model.derived import installer_of
from whygpu.model.environment import Variable
from whygpu.model.explanation import Explanation
from whygpu.model.finding import Finding, Remedy
from whygpu.model.libraries import LibraryCopy, OtherCopy, SearchedFolder
from whygpu.model.log import Log
from whygpu.model.observed import Known
from whygpu.model.report import Outcome
from whygpu.model.snapshot import Snapshot
from whygpu.model.target import PLAIN_PIP
from whygpu.planner.remedies import Destination, destination_of, destination_of_log, fulfilled
from whygpu.readers.code import source
from whygpu.readers.log import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_AMD = """
start = "no-gpu"
only = ["torch"]
[[graphics]]
vendor = "amd"
address = "0000:03:00.0"
device_id = "744c"
kernel_driver = "amdgpu"
[amd]
gpus = [{node = 1, target = "gfx1100"}]
device_nodes = [
    {path = "/dev/kfd", mode = "crw-rw----", group = "render", usable = true},
    {path = "/dev/dri/renderD128", mode = "crw-rw----", group = "render", usable = true},
]
rocm = "6.4.1-83"
[target.frameworks.torch.build]
kind = "rocm"
amd_targets = ["gfx90a", "gfx1030", "gfx1100"]
"""
_INTEL = """
start = "no-gpu"
only = ["torch"]
[[graphics]]
vendor = "intel"
address = "0000:03:00.0"
device_id = "56a0"
kernel_driver = "xe"
[intel]
device_nodes = [
    {path = "/dev/dri/renderD128", mode = "crw-rw----", group = "render", usable = true},
]
level_zero = "/usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1"
[target.frameworks.torch.build]
kind = "xpu"
"""
_STARTS = {"healthy": machines.healthy, "no-gpu": machines.without_gpu}
_FURTHER_STARTS = {"amd": _AMD, "intel": _INTEL}
"""Machines that differ from one of the starts themselves."""

_TEMPLATES: tuple[Any, ...] = (
    machines.package("example", "1.0"),
    machines.GPU,
    machines.LOAD_TEST,
    machines.probe_of("torch", "2.8.0", None),
    machines.FRAMEWORKS[3],
    machines.resolution("libexample.so.1", "/example", "/example/requester.so"),
    machines.operation("matmul", "CPU:0", "cpu"),
    Variable("EXAMPLE", "", "an example"),
    LibraryCopy("example", "libexample.so.1", "/example", Known("1.0", "example"), "system", ""),
    SearchedFolder("/example", "default", "", "not-there"),
    OtherCopy("/example", "an example"),
)
"""The default for a new item of a list, by its type."""

_KEYS = ("number", "pid", "name", "library", "path", "address")
"""The field that names an item of a list, so that an example can say which one it changes."""


@cache
def machine(toml: str = "") -> Snapshot:
    """A snapshot of a healthy machine with the changes that the TOML text describes.

    Tables follow the snapshot's fields. An observed fact is given by its plain value, or as
    `{unknown = "reason"}` or `{absent = "where"}`. An item of a list is addressed by its name
    (`[target.frameworks.torch]`, `[driver.gpus.0]`) and added if it does not exist; `remove = true`
    removes it. Three keys change the starting point: `start = "no-gpu"`, or "amd" or "intel" for a
    PyTorch that uses such a GPU; `only = ["torch"]`, which keeps only those frameworks; and
    `nothing_seen = true`, which makes every fact unknown. Setting `probes_left_out` removes the
    probes.
    """
    changes = tomllib.loads(toml)
    start, encoded = _start(changes.pop("start", "healthy"))
    base = dict(encoded)
    if changes.pop("nothing_seen", False):
        base = _unseen(Snapshot, {**base, "probes_left_out": _NOTHING_SEEN})
    only = changes.pop("only", None)
    if only is not None:
        found = base["target"]["frameworks"]
        kept = {**found, "known": [f for f in found["known"] if f["name"] in only]}
        base["target"] = {**base["target"], "frameworks": kept}
        base["probes"] = [p for p in base["probes"] if p["name"] in (*only, "cuda")]
    if changes.get("probes_left_out"):
        base["probes"] = []
    changed = _change(Snapshot, base, changes)
    # Most machines differ in one or two parts; decoding the others would take most of the time.
    return start._replace(
        **{
            name: decode(kind, changed[name])
            for name, kind in hints(Snapshot)
            if changed[name] is not encoded[name]
        }
    )


@cache
def _start(name: str) -> tuple[Snapshot, dict[str, Any]]:
    """A machine to start from, and the same encoded, which is not to be changed."""
    differences = _FURTHER_STARTS.get(name)
    snapshot = _STARTS[name]() if differences is None else machine(differences)
    return snapshot, encode(snapshot)


_NOTHING_SEEN = "nothing could be seen"


def _unseen(kind: Any, data: Any) -> Any:
    """The same value with every observed fact unknown, and no items in its lists."""
    if any(get_origin(member) is Known for member in get_args(kind)):
        return {"unknown": _NOTHING_SEEN}
    if get_origin(kind) is tuple:
        return []
    if is_record(kind):
        return {name: _unseen(inner, data[name]) for name, inner in hints(kind)}
    return data


def run(cause: Cause, snapshot: Snapshot) -> Outcome:
    """The outcome of one cause on a machine."""
    return outcome_of(cause, snapshot)


@cache
def explained(log: str) -> Explanation:
    """The explanation of a log by the whole catalogue."""
    return explain(read_text(log), catalogue())


def command_of(
    remedy: Remedy, seen: Snapshot | None = None, planned_for: Snapshot | None = None
) -> str | None:
    """The command for a remedy on a machine, or without facts about the machine."""
    chosen = planned_for or seen
    remedy = _fulfilled(
        remedy, destination_of_log(Log(())) if chosen is None else destination_of(chosen)
    )
    return shell_text(remedy.action, PLAIN_PIP if seen is None else installer_of(seen))


@cache
def _fulfilled(remedy: Remedy, destination: Destination) -> Remedy:
    finding = Finding("WG000", "example", "error", "machine", "", (), (remedy,), "none")
    (remedy,) = fulfilled((finding,), lambda: destination)[0].remedies
    return remedy


def lint(text: str, *causes: Cause, path: str = "example.py") -> list[CodeFinding]:
    """The findings of these causes, or of all, in a piece of source."""
    chosen = causes or tuple(cause for cause in catalogue() if cause.code_detector is not None)
    loaded = source.load(path, text.encode())
    made = source.program(loaded, source.parse(loaded))
    found, crashes = judge(made, relevant(chosen, words_in(chosen, TextWords(loaded.text))))
    assert not crashes, crashes
    return found


_FILE_NAME = re.compile(r"==> (\S+) <==")


def setup_findings(text: str, *causes: Cause) -> list[SetupFinding]:
    """The findings of these causes, or of all, in the files of an example: ==> name <== text."""
    chosen = causes or tuple(cause for cause in catalogue() if cause.setup_detector is not None)
    files: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        heading = _FILE_NAME.fullmatch(line)
        if heading is not None:
            name = heading[1]
        else:
            assert name, "an example of files begins with the name of a file"
            files[name] = files.get(name, "") + f"{line}\n"
    found: dict[tuple[str, str, int], SetupFinding] = {}
    facts = tomllib.loads(files.pop("machine", ""))
    place = source_verb._machine(facts.get("driver"), facts.get("gpu"), None)
    for path, content in files.items():
        settings = Settings(judge=source_verb._judged_requirements, machine=place)
        analysis = analyse_setup(path, content, settings, chosen, GivenFiles(files))
        assert not analysis.problems, analysis.problems
        for item, reason in analysis.found:
            if reason is None:
                found.setdefault((item.finding.code, item.place.file, item.place.line), item)
    return list(found.values())


def machine_causes() -> tuple[Cause, ...]:
    """The causes with a machine detector."""
    return tuple(cause for cause in catalogue() if cause.machine_detector is not None)


def cause_named(slug: str) -> Cause:
    return next(cause for cause in catalogue() if cause.slug == slug)


def _change(kind: Any, base: Any, change: Any) -> Any:
    observed = next((m for m in get_args(kind) if get_origin(m) is Known), None)
    if observed is not None:
        if isinstance(change, dict) and change.keys() in ({"unknown"}, {"absent"}):
            return change
        (inner,) = get_args(observed)
        below = base["known"] if isinstance(base, dict) and "known" in base else None
        return {"known": _change(inner, below, change), "source": "example"}
    if get_origin(kind) is tuple and isinstance(change, dict):
        return _change_items(get_args(kind)[0], list(base or []), change)
    members = [m for m in get_args(kind) if is_record(m)]
    if get_origin(kind) is not tuple and members:
        return _change(members[0], base, change)
    if is_record(kind) and isinstance(change, dict):
        fields = dict(hints(kind))
        result = dict(base) if base is not None else dict(_template(kind))
        for name, value in change.items():
            if name not in fields:
                raise KeyError(f"{kind.__name__} has no field {name}")
            result[name] = _change(fields[name], result.get(name), value)
        return result
    if get_origin(kind) is tuple and isinstance(change, list):
        inner = get_args(kind)[0]
        return [_change(inner, None, item) for item in change]
    return change


def _change_items(kind: Any, items: list[Any], change: dict[str, Any]) -> list[Any]:
    key = next(name for name in _KEYS if name in dict(hints(kind)))
    for name, value in change.items():
        place = next((i for i, item in enumerate(items) if str(item[key]) == name), None)
        if value.pop("remove", False):
            assert place is not None, f"there is no {kind.__name__} {name} to remove"
            del items[place]
            continue
        fresh = {**_template(kind), key: int(name) if key in ("number", "pid") else name}
        changed = _change(kind, fresh if place is None else items[place], value)
        if place is None:
            items.append(changed)
        else:
            items[place] = changed
    return items


def _template(kind: type) -> dict[str, Any]:
    template = next((item for item in _TEMPLATES if type(item) is kind), None)
    if template is None:
        return {}
    result: dict[str, Any] = encode(template)
    return result


class Example(NamedTuple):
    """One example of a cause's page."""

    expectation: Literal["fires", "quiet", "cannot tell"]
    kind: Literal["machine", "log", "code", "setup"]
    text: str


def machine_examples(cause: Cause) -> list[Example]:
    return [example for example in examples(cause.page) if example.kind == "machine"]


_SECTION = re.compile(r"^## (Fires|Quiet|Cannot tell) on(?: \((machine|log|code|setup)\))?\s*$")


@cache
def examples(page: str) -> tuple[Example, ...]:
    """The fenced examples under a page's Fires on, Quiet on and Cannot tell on headings."""
    found: list[Example] = []
    heading: re.Match[str] | None = None
    block: list[str] | None = None
    for line in page.splitlines():
        if block is not None:
            if line.startswith("```"):
                assert heading is not None
                found.append(_example(heading, block))
                block = None
            else:
                block.append(line)
        elif line.startswith("## "):
            heading = _SECTION.match(line)
        elif line.startswith("```") and heading is not None:
            block = []
    assert block is None, "an example is not closed"
    return tuple(found)


def _example(heading: re.Match[str], lines: list[str]) -> Example:
    expectation: Any = heading.group(1).lower()
    kind: Any = heading.group(2) or "machine"
    return Example(expectation, kind, "\n".join(lines))
