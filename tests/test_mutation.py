"""Every detector matters: broken on purpose, the examples on its cause's page notice it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.cases import each
from tests.kit import (
    examples,
    lint,
    machine,
    machine_causes,
    machine_examples,
    run,
    setup_findings,
)
from whygpu.causes import catalogue
from whygpu.model.cause import Cause, CodeDetector, SetupDetector
from whygpu.model.code_finding import CodeFinding
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.finding import MACHINE, Evidence, Finding, Gap, Remedy
from whygpu.model.observed import Undetermined
from whygpu.model.program import Program
from whygpu.model.snapshot import Snapshot

EXPECTED = {
    "fires": ("found",),
    "quiet": ("passed", "not-applicable"),
    "cannot tell": ("undetermined",),
}


every_cause = each("cause", machine_causes(), ids=lambda cause: cause.slug)


def _blind(cause: Cause, snapshot: Snapshot) -> Iterator[Finding | Gap]:
    """Finds nothing, ever."""
    yield from ()


def _eager(cause: Cause, snapshot: Snapshot) -> Iterator[Finding | Gap]:
    """Finds its fault on every machine."""
    yield cause.finding(
        subject=MACHINE,
        message="as always",
        evidence=(Evidence("machine", "nowhere", "nothing"),),
        remedies=(Remedy("None."),),
    )


def _timid(cause: Cause, snapshot: Snapshot) -> Iterator[Finding | Gap]:
    """Can never tell."""
    yield Gap("it could not look")


def _reckless(cause: Cause, snapshot: Snapshot) -> Iterator[Finding | Gap]:
    """The real one, but what could not be judged counts as fine."""
    detector = cause.machine_detector
    assert detector is not None
    try:
        yield from (item for item in detector(snapshot) if not isinstance(item, Gap))
    except Undetermined:
        return


def _whole(cause: Cause, snapshot: Snapshot) -> Iterator[Finding | Gap]:
    """The real one."""
    assert cause.machine_detector is not None
    yield from cause.machine_detector(snapshot)


Break = Callable[[Cause, Snapshot], Iterator[Finding | Gap]]


def mutant(cause: Cause, broken: Break) -> Cause:
    """A copy of a cause with a detector that is wrong in one way."""
    copy = Cause(
        cause.code,
        cause.slug.replace("-", "_"),
        cause.page,
        severity=cause.severity,
        effect=cause.effect,
        explains=cause.explains,
    )
    copy.on_machine(partial(broken, cause))
    return copy


def survives(cause: Cause) -> bool:
    """Every example on its page is judged as the page says."""
    return all(
        run(cause, machine(example.text)).status in EXPECTED[example.expectation]
        for example in machine_examples(cause)
    )


@every_cause
def test_a_broken_detector_is_noticed(cause: Cause) -> None:
    assert survives(mutant(cause, _whole)), f"{cause.code} {cause.slug}: {_whole.__doc__}"
    for broken in (_blind, _eager, _timid, _reckless):
        assert not survives(mutant(cause, broken)), f"{cause.code} {cause.slug}: {broken.__doc__}"


CODE_JUDGED = [cause for cause in catalogue() if cause.code_detector is not None]

every_code_cause = each("cause", CODE_JUDGED, ids=lambda cause: cause.slug)


def _blind_reader(cause: Cause, program: Program) -> Iterator[CodeFinding]:
    """Finds nothing in any program."""
    yield from ()


def _eager_reader(cause: Cause, program: Program) -> Iterator[CodeFinding]:
    """Finds its fault in every program."""
    yield cause.in_code(
        program, program.tree.body[0], subject=MACHINE, message="as always", fix="None."
    )


def code_survives(cause: Cause, detector: CodeDetector) -> bool:
    """Every code example on its page is judged as the page says."""
    copy = Cause(
        cause.code,
        cause.slug.replace("-", "_"),
        cause.page,
        severity=cause.severity,
        effect=cause.effect,
        explains=cause.explains,
    )
    copy.on_code(*cause.code_words, needs=cause.code_needs, possible=cause.code_possible)(detector)
    return all(
        bool(lint(example.text, copy)) is (example.expectation == "fires")
        for example in examples(cause.page)
        if example.kind == "code"
    )


@every_code_cause
def test_a_broken_code_detector_is_noticed(cause: Cause) -> None:
    assert cause.code_detector is not None
    assert code_survives(cause, cause.code_detector), f"{cause.code} {cause.slug}: the real one"
    for broken in (_blind_reader, _eager_reader):
        noticed = not code_survives(cause, partial(broken, cause))
        assert noticed, f"{cause.code} {cause.slug}: {broken.__doc__}"


SETUP_JUDGED = [cause for cause in catalogue() if cause.setup_detector is not None]

every_setup_cause = each("cause", SETUP_JUDGED, ids=lambda cause: cause.slug)


def _blind_to_setups(cause: Cause, setup: Setup) -> Iterator[SetupFinding]:
    """Finds nothing in any file."""
    yield from ()


def _eager_in_setups(cause: Cause, setup: Setup) -> Iterator[SetupFinding]:
    """Finds its fault in every file."""
    yield cause.in_setup(
        setup.place, subject=MACHINE, message="as always", fix="None.", rests_on=()
    )


def setup_survives(cause: Cause, detector: SetupDetector) -> bool:
    """Every example of files on its page is judged as the page says."""
    copy = Cause(
        cause.code,
        cause.slug.replace("-", "_"),
        cause.page,
        severity=cause.severity,
        effect=cause.effect,
        explains=cause.explains,
    )
    copy.on_setup(detector)
    return all(
        bool(setup_findings(example.text, copy)) is (example.expectation == "fires")
        for example in examples(cause.page)
        if example.kind == "setup"
    )


@pytest.mark.slow
@every_setup_cause
def test_a_broken_setup_detector_is_noticed(cause: Cause) -> None:
    assert cause.setup_detector is not None
    assert setup_survives(cause, cause.setup_detector), f"{cause.code} {cause.slug}: the real one"
    for broken in (_blind_to_setups, _eager_in_setups):
        noticed = not setup_survives(cause, partial(broken, cause))
        assert noticed, f"{cause.code} {cause.slug}: {broken.__doc__}"
