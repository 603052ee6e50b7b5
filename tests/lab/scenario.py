"""A scenario: a machine broken in a known way, what the framework does there, what whygpu says.

`run(scenario, folder)` lays the machine out, sees the framework fail (so that the fault is known to
be real), runs `whygpu check --json` as any user would, and compares. If the probes of `check` do
the same as the scenario's program, `watch_program` can see the framework fail at another time.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest

from tests.kit import explained
from tests.lab import stage as stages
from tests.lab.bench import Bench, cache
from tests.lab.driver import NoCompiler, StubDriver
from tests.lab.programs import PROBED
from tests.lab.stage import Stage
from tests.lab.wheels import NotFetched
from tests.patience import PATIENCE
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import diagnose
from whygpu.model.cause import Cause
from whygpu.model.codec import decode
from whygpu.model.snapshot import Snapshot

NO_GPU = Stage(pci=())
"""Where a scenario says nothing about the hardware, and the kernel lets us choose it."""

Severity = Literal["error", "warning", "info"]


class Root(NamedTuple):
    """A root cause that has to be named."""

    cause: str
    subject: str
    severity: Severity = "error"


def warning(cause: str, subject: str) -> Root:
    return Root(cause, subject, "warning")


def info(cause: str, subject: str) -> Root:
    return Root(cause, subject, "info")


@dataclass(frozen=True)
class Does:
    """What a program does on the machine, which proves that the fault is real there."""

    code: str
    """Python, run by the target's interpreter."""
    says: str = ""
    """A regular expression that its output has to match."""
    keeps_quiet_about: str = ""
    """A regular expression that its output must not match."""
    exit_code: int = 0
    """Negative: the signal that ends it."""
    hangs_for: float | None = None
    """It is still running after so many seconds."""


@dataclass(frozen=True)
class Scenario:
    name: str
    target: str
    """The shared environment that it starts from; see tests/targets.py."""
    does: Does
    roots: tuple[Root, ...]
    """Every root cause that whygpu names, in the order in which it names them."""
    verdicts: Mapping[str, str]
    """By framework."""
    verdict: str
    """On the machine as a whole."""
    exit_code: int = 1
    driver: StubDriver | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    stage: Stage | None = None
    lay_out: tuple[Callable[[Bench], None], ...] = ()
    """What else is done to the machine, step by step; tests/lab/machines.py has common steps."""
    probe: bool = True
    timeout: float | None = None
    """The probes' limit, where it matters."""
    slow: bool = False
    """Starts from one of the large environments, which only the long run has."""
    log_shows: tuple[str, ...] = ()
    """Causes that the frameworks' own words prove, beside those that are found on the machine."""
    unmendable: str = ""
    """Why no remedy can have an effect on this machine, although it would on a real one."""
    like: tuple[str, ...] = ()
    """Scenarios that show the same causes; only `make test-full` has this one."""

    @property
    def causes(self) -> set[str]:
        return {root.cause for root in self.roots}

    @property
    def is_probed(self) -> bool:
        """Whether a probe of `whygpu check` does what the program does, and meets the fault."""
        return self.probe and self.does.code in PROBED


class Examined(NamedTuple):
    """A scenario's machine as it was checked. The machine itself is gone."""

    report: dict[str, Any]
    environment: str
    folder: str


def run(scenario: Scenario, folder: Path, *, watch: bool = True) -> Examined:
    """Carry a scenario out; an AssertionError says in what the machine or whygpu differs.

    Without `watch`, only the probes of whygpu run the framework.
    """
    with laid_out(scenario, folder) as (bench, before), ThreadPoolExecutor(1) as pool:
        watched = pool.submit(_watch_framework, scenario.does, bench, before) if watch else None
        report, code = check(scenario, bench, before)
        if watched is not None:
            watched.result()
    if keep := os.environ.get("WHYGPU_LAB_REPORTS"):
        (Path(keep) / f"{scenario.name}.json").write_text(json.dumps(report))
    _compare(scenario, report, code)
    _explain(scenario, report)
    _break_detectors(scenario, report)
    return Examined(report, str(bench.environment), str(bench.folder))


def watch_program(scenario: Scenario, folder: Path) -> None:
    """Run the scenario's program alone; an AssertionError says in what it differs."""
    with laid_out(scenario, folder) as (bench, before):
        _watch_framework(scenario.does, bench, before)


@contextmanager
def laid_out(
    scenario: Scenario, folder: Path, *, whole: bool = False
) -> Iterator[tuple[Bench, list[str]]]:
    """The scenario's machine, and what to put before a command that runs on it."""
    folder.mkdir(parents=True, exist_ok=True)
    before = before_commands(scenario, folder)
    bench = Bench(scenario.target, folder, whole=whole)
    try:
        lay_out(scenario, bench)
        yield bench, before
    except (NoCompiler, NotFetched) as reason:
        pytest.skip(str(reason))
    finally:
        bench.close()


def before_commands(scenario: Scenario, folder: Path) -> list[str]:
    reason = stages.unavailable(cache())
    if reason is None:
        return stages.command(scenario.stage or NO_GPU, folder)
    if scenario.stage is not None:
        pytest.skip(reason)
    return []


def lay_out(scenario: Scenario, bench: Bench) -> None:
    if scenario.driver is not None:
        installed = scenario.driver.install(bench.folder / "driver", cache=cache())
        bench.set(**installed)
    bench.set(**scenario.environ)
    for step in scenario.lay_out:
        step(bench)


def _watch_framework(does: Does, bench: Bench, before: list[str]) -> None:
    try:
        done = subprocess.run(
            [*before, bench.python, "-u", "-c", does.code],
            env=bench.environ,
            cwd=bench.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=does.hangs_for or PATIENCE,
        )
    except subprocess.TimeoutExpired:
        assert does.hangs_for is not None, f"the program does not end within {PATIENCE:g} s"
        return
    output = done.stdout.decode(errors="replace")
    assert does.hangs_for is None, f"the program ends, instead of hanging:\n{output[-3000:]}"
    assert done.returncode == does.exit_code, (
        f"the program ends with {_how(done.returncode)}, not {_how(does.exit_code)}:\n"
        f"{output[-3000:]}"
    )
    if does.says:
        assert re.search(does.says, output), f"{does.says!r} is not in:\n{output[-3000:]}"
    if does.keeps_quiet_about:
        unexpected = re.search(does.keeps_quiet_about, output)
        assert unexpected is None, f"{unexpected!r} is in:\n{output[-3000:]}"


def _how(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def check(
    scenario: Scenario,
    bench: Bench,
    before: list[str],
    environ: Mapping[str, str] | None = None,
    *,
    probe: bool = True,
) -> tuple[dict[str, Any], int]:
    """The report of `whygpu check --json` on the scenario's machine, and its exit code."""
    limit = scenario.timeout
    report, code = _check(scenario, bench, before, environ, limit, probe=probe)
    if limit is not None and _is_cut_short(report):
        # This machine is too busy for the limit: what hangs was not reached.
        report, code = _check(scenario, bench, before, environ, 10 * limit, probe=probe)
    return report, code


def _is_cut_short(report: dict[str, Any]) -> bool:
    return any(probe["ended"] == "cut-short" for probe in report["snapshot"]["probes"])


def _check(
    scenario: Scenario,
    bench: Bench,
    before: list[str],
    environ: Mapping[str, str] | None,
    limit: float | None,
    *,
    probe: bool,
) -> tuple[dict[str, Any], int]:
    command = [sys.executable, "-m", "whygpu", "check", "--json", "--python", bench.python]
    if not (scenario.probe and probe):
        command.append("--no-probe")
    if limit is not None:
        command += ["--timeout", str(limit)]
    done = subprocess.run(
        [*before, *command],
        env=bench.environ if environ is None else environ,
        cwd=bench.folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode in (0, 1, 4), f"whygpu ends with {done.returncode}:\n{done.stderr}"
    return json.loads(done.stdout), done.returncode


def _compare(scenario: Scenario, report: dict[str, Any], code: int) -> None:
    seen = _Seen.of(report, code)
    expected = _Seen(scenario.roots, dict(scenario.verdicts), scenario.verdict, scenario.exit_code)
    told = "\n".join(
        f"- {item['code']} {item['cause']} ({item['severity']}): {item['message']}"
        for item in report["root_causes"]
    )
    cannot = "\n".join(f"- {item['code']}: {item['reason']}" for item in report["undetermined"])
    crashed = report["outcomes"]["crashed"]
    assert seen == expected, (
        f"expected {expected}\nreceived {seen}\nwhygpu said:\n{told}\ncould not tell:\n{cannot}"
    )
    assert crashed == 0, f"a detector crashed:\n{cannot}"


def _explain(scenario: Scenario, report: dict[str, Any]) -> None:
    """What a log proves, said with certainty, is so: it is found on the machine that wrote it."""
    true = {finding["cause"] for finding in report["findings"]}.union(scenario.log_shows)
    for probe in decode(Snapshot, report["snapshot"]).probes:
        words = [*probe.log, probe.how] if probe.ended == "exception" else probe.log
        explanation = explained("\n".join(words))
        assert not explanation.crashed
        certain = {f.cause for f in explanation.root_causes if f.confidence == "certain"}
        assert certain <= true, f"of the log of {probe.name}, explain claims {certain - true}"


def _break_detectors(scenario: Scenario, report: dict[str, Any]) -> None:
    """Without any one of the detectors that it is about, the scenario would not pass."""
    snapshot = decode(Snapshot, report["snapshot"])
    assert _roots(snapshot, catalogue()) == scenario.roots, "the saved snapshot tells another story"
    for slug in scenario.causes:
        others = [cause for cause in catalogue() if cause.slug != slug]
        assert _roots(snapshot, others) != scenario.roots, f"{slug} makes no difference"


def _roots(snapshot: Snapshot, causes: Sequence[Cause]) -> tuple[Root, ...]:
    return tuple(
        Root(finding.cause, finding.subject, finding.severity)
        for finding in diagnose(snapshot, causes).root_causes
    )


class _Seen(NamedTuple):
    roots: tuple[Root, ...]
    verdicts: dict[str, str]
    verdict: str
    exit_code: int

    @classmethod
    def of(cls, report: dict[str, Any], code: int) -> _Seen:
        return cls(
            tuple(
                Root(item["cause"], item["subject"], item["severity"])
                for item in report["root_causes"]
            ),
            {item["name"]: item["verdict"] for item in report["frameworks"]},
            report["verdict"],
            code,
        )
