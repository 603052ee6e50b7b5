"""A snapshot: what was looked at, and what could not be. `whygpu.diagnose` judges it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from whygpu.model.derived import display_name
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.snapshot import Snapshot
from whygpu.render.examined import machine_parts
from whygpu.render.html.markup import Child
from whygpu.render.html.parts import Sheet, facts, sections


def sheet(snapshot: Snapshot) -> Sheet:
    return Sheet(
        "snapshot",
        "answered",
        f"A snapshot of {snapshot.taken}, by whygpu {snapshot.whygpu}",
        tuple(machine_parts(snapshot)),
        None,
        sections(("What was seen", facts(_seen(snapshot)))),
    )


def _seen(snapshot: Snapshot) -> Iterator[tuple[str, Child]]:
    yield "system", f"{snapshot.system.os}, {snapshot.system.kernel}"
    yield "processor", f"{snapshot.system.cpu.cores} cores, {snapshot.system.cpu.architecture}"
    yield "driver", _text(snapshot.driver.version)
    yield "CUDA of driver", _text(snapshot.driver.cuda)
    frameworks = snapshot.target.frameworks
    if isinstance(frameworks, Known):
        for each in frameworks.value:
            yield display_name(each.name), f"{each.version} ({each.distribution})"
    else:
        yield "frameworks", _text(frameworks)
    for probe in snapshot.probes:
        yield f"{probe.name} was run", f"{probe.ended}, {probe.seconds:.1f} s"
    if snapshot.probes_left_out:
        yield "not run", snapshot.probes_left_out


def _text(fact: Observed[Any]) -> str:
    if isinstance(fact, Known):
        return str(fact.value)
    return f"unknown: {fact.reason}" if isinstance(fact, Unknown) else "none"
