"""What holds for every test."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Generator

import hypothesis
import pytest

from tests import targets, tested_frameworks

_TOO_SLOW = "processor seconds"
_EVERYDAY_SECONDS = 3.0
"""Much more than the marker `slow` says: some tests that many changes need are kept."""


def pytest_configure() -> None:
    """Give signals their ordinary meaning, and programs a folder to write to, whoever started us.

    A shell starts what runs in the background with SIGINT ignored, nohup with SIGHUP ignored, and
    both are inherited: tests that send these signals would then wait in vain.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    # No test reads the release table that a developer has updated.
    os.environ["XDG_DATA_HOME"] = os.path.join(tempfile.gettempdir(), "whygpu-no-such-data")
    # How fast examples are drawn depends on what else the machine does.
    hypothesis.settings.register_profile(
        "busy", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
    )
    hypothesis.settings.load_profile("busy")
    if "TMPDIR" in os.environ:
        # Python passes over a folder that is full or cannot be written to; compilers do not.
        os.environ["TMPDIR"] = tempfile.gettempdir()


def pytest_collection_finish() -> None:
    """Drop the garbage of the collection; `earlier_objects` keeps the rest to the end."""
    gc.collect()


@pytest.fixture(autouse=True, scope="module")
def earlier_objects() -> None:
    """Code under test may search for garbage: spare it what other modules loaded and cached."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """pytest searches for garbage several times at its end: spare it what the tests have cached."""
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Keep the everyday suite fast: note a test in it that should be marked as slow."""
    __tracebackhide__ = True
    before = sum(os.times()[:4])
    result = yield
    spent = sum(os.times()[:4]) - before
    if pyfuncitem.config.option.markexpr == "not slow" and spent > _EVERYDAY_SECONDS:
        pyfuncitem.user_properties.append((_TOO_SLOW, f"{spent:.1f}"))
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the report say which frameworks the test asked for."""
    asked = tested_frameworks.noted()
    item.user_properties += [(tested_frameworks.PROPERTY, target) for target in asked]
    report = yield
    report.user_properties = list(item.user_properties)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which frameworks were tested for real, loudly which were not, and what was too slow."""
    for report in terminalreporter.getreports("passed"):
        for seconds in _properties(report, _TOO_SLOW):
            terminalreporter.line(f"{seconds} s, mark it as slow: {report.nodeid}")
    ended = [
        tested_frameworks.Ended(asked, outcome == "passed", _reason(report))
        for outcome in ("passed", "skipped", "failed", "error")
        for report in terminalreporter.getreports(outcome)
        if isinstance(report, pytest.TestReport)
        if (asked := _properties(report, tested_frameworks.PROPERTY))
    ]
    names = {name for test in ended for name in test.targets}
    versions = {name: tested_frameworks.versions_in(targets.folder() / name) for name in names}
    on_request = [name for name, spec in targets.TARGETS.items() if not spec.everyday]
    found = tested_frameworks.summary(ended, versions, on_request)
    if any(found):
        terminalreporter.section("frameworks tested for real")
    for line in found.tested:
        terminalreporter.line(line)
    for line in found.on_request:
        terminalreporter.line(f"not tested, because it is built on request: {line}")
    for line in found.untested:
        terminalreporter.line(f"NOT TESTED: {line}", red=True, bold=True)


def _properties(report: pytest.TestReport, wanted: str) -> tuple[str, ...]:
    return tuple(str(value) for name, value in report.user_properties if name == wanted)


def _reason(report: pytest.TestReport) -> str:
    """Why a test was skipped."""
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
