"""Why is the verdict another one? The differences that, put into the good machine, make it bad.

A *question* is a root cause, or a framework's verdict, that only one side has. That side is bad,
the other one good. Each trial puts some of the bad side's facts into the good machine and asks the
detector of the cause, or the whole engine. At first nothing counts as run on these machines,
because nothing was. If the files alone do not show the fault, the trials get what the frameworks
did on the bad side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from whygpu.diagnosis.engine import diagnose, outcome_of
from whygpu.differences.bench import Bench
from whygpu.differences.search import OutOfTrials, Positions, Sets, smallest_sets
from whygpu.differences.suspects import suspects_of
from whygpu.model.cause import Cause
from whygpu.model.differences import Basis, Reason
from whygpu.model.finding import Effect, Finding
from whygpu.model.report import FrameworkReport, FrameworkVerdict, Report
from whygpu.model.snapshot import Snapshot

LONGEST_SEARCH = 10.0
"""Seconds for one question."""
NOT_INSTALLED: FrameworkVerdict = "not-installed"

_EFFECTS: tuple[Effect, ...] = ("none", "cpu", "broken")
_RANKS: dict[FrameworkVerdict, int] = {"gpu": 0, "cpu": 1, "broken": 2}
"""From good to bad. What is unknown is neither. A package that is not installed explains itself."""


class Question(NamedTuple):
    """What only the bad side has: a finding, or else the verdict on a framework."""

    finding: Finding | None
    framework: str
    bad_is_after: bool


class Explainer:
    """Answers the questions about two machines, from their reports."""

    def __init__(
        self, bench: Bench, before: Report, after: Report, causes: Sequence[Cause]
    ) -> None:
        self._bench = bench
        self._reports = (before, after)
        self._causes = causes
        self._by_code = {cause.code: cause for cause in causes}
        self._judged: dict[tuple[int, Basis, bool], Mapping[str, FrameworkReport]] = {}

    def reasons(self) -> tuple[Reason, ...]:
        return tuple(_together(map(self._reason, self._questions())))

    def _questions(self) -> Iterator[Question]:
        before, after = self._reports
        for bad_is_after in (True, False):
            for finding in self._new_roots(bad_is_after):
                yield Question(finding, "", bad_is_after)
        first, second = verdicts(before), verdicts(after)
        for name in (name for name in first if name in second):
            ranks = [_RANKS.get(side[name].verdict) for side in (first, second)]
            if ranks[0] is None or ranks[1] is None or ranks[0] == ranks[1]:
                continue
            bad_is_after = ranks[1] > ranks[0]
            codes = {finding.code for finding in self._new_roots(bad_is_after)}
            if codes.isdisjoint((second if bad_is_after else first)[name].because):
                yield Question(None, name, bad_is_after)

    def _new_roots(self, bad_is_after: bool) -> list[Finding]:
        """Root causes that only the bad side has."""
        bad, good = self._reports[bad_is_after], self._reports[not bad_is_after]
        # A finding that a framework refuted by running is only a warning. If the other side was not
        # run, that is not a difference between the machines.
        both_ran = was_run(bad.snapshot) == was_run(good.snapshot)

        def key(finding: Finding) -> tuple[str, ...]:
            return (finding.code, finding.subject, finding.severity if both_ran else "")

        known = set(map(key, good.findings))
        return [
            finding
            for finding in bad.root_causes
            if finding.severity != "info" and key(finding) not in known
        ]

    def _reason(self, question: Question) -> Reason:
        bad = self._bad(question)
        why = (
            "what whygpu compares of the machines does not show it"
            if self._bench.differences
            else "nothing that whygpu compares differs, except for what happened when it was run"
        )
        for basis in _bases(bad):
            try:
                sets = self._searched(question, basis)
            except OutOfTrials:
                why = f"the search took longer than {LONGEST_SEARCH:.0f} s"
                continue
            if sets is not None and sets.found:
                return _reason(question, basis, sets)
        finding = question.finding
        places = suspects_of(
            self._bench.differences,
            question.framework if finding is None else finding.subject,
            bad,
            "" if finding is None else _text_of(finding),
        )
        nothing = _reason(question, "files", Sets((), complete=False))
        return nothing._replace(unexplained=why, suspects=places)

    def _bad(self, question: Question) -> Snapshot:
        return self._bench.after if question.bad_is_after else self._bench.before

    def _searched(self, question: Question, basis: Basis) -> Sets | None:
        """The sets; None if the trials cannot decide, because they show the fault without any
        difference, or not even with all of them."""
        shows = self._sign_of(question, basis)
        if shows is None:
            return None
        until = time.monotonic() + LONGEST_SEARCH

        def happens(positions: Positions) -> bool:
            if time.monotonic() > until:
                raise OutOfTrials
            return shows(self._chosen(question, positions))

        if happens(()):
            return None
        differences = self._bench.differences
        compared = [i for i, difference in enumerate(differences) if difference.comparable]
        for pool in (compared, range(len(differences))):
            if happens(tuple(pool)):
                return smallest_sets(happens, pool)
        return None

    def _chosen(self, question: Question, positions: Positions) -> int:
        """The leaves that are as they are after, in the good machine with these facts of the bad
        one."""
        bits = 0
        for place in positions:
            bits |= self._bench.differences[place].bits
        return bits if question.bad_is_after else self._bench.everything & ~bits

    def _machine(self, question: Question, basis: Basis, chosen: int) -> Snapshot:
        machine = self._bench.machine(chosen)
        if basis == "files":
            return machine
        bad = self._bad(question)
        return machine._replace(probes=bad.probes, probes_left_out=bad.probes_left_out)

    def _sign_of(self, question: Question, basis: Basis) -> Callable[[int], bool] | None:
        """How a machine with these leaves shows that it has the fault of the bad one."""
        if question.finding is not None:
            cause, finding = self._by_code.get(question.finding.code), question.finding
            return None if cause is None else self._sign_of_finding(question, basis, cause, finding)
        everything = self._chosen(question, tuple(range(len(self._bench.differences))))
        wanted = self._verdict(question, basis, everything)
        if wanted == "unknown":
            return None
        return lambda chosen: self._verdict(question, basis, chosen) == wanted

    def _sign_of_finding(
        self, question: Question, basis: Basis, cause: Cause, wanted: Finding
    ) -> Callable[[int], bool] | None:
        """A finding of this cause with the same effect. The detector of a cause may also find
        something that leaves the GPU usable, and that explains no lost GPU."""

        def effects(chosen: int) -> set[int]:
            found = outcome_of(cause, self._machine(question, basis, chosen)).findings
            return {_EFFECTS.index(each.effect) for each in found if each.subject == wanted.subject}

        everything = self._chosen(question, tuple(range(len(self._bench.differences))))
        of_all = effects(everything)
        if not of_all:
            return None
        effect = _EFFECTS.index(wanted.effect)
        # The engine weakens a finding that a framework has refuted by running.
        least = effect if effect in of_all else max(of_all)
        return lambda chosen: max(effects(chosen), default=-1) >= least

    def _verdict(self, question: Question, basis: Basis, chosen: int) -> FrameworkVerdict:
        key = (chosen, basis, question.bad_is_after)
        if key not in self._judged:
            machine = self._machine(question, basis, chosen)
            self._judged[key] = verdicts(diagnose(machine, self._causes))
        found = self._judged[key].get(question.framework)
        return NOT_INSTALLED if found is None else found.verdict


def _reason(question: Question, basis: Basis, sets: Sets) -> Reason:
    return Reason(
        finding=question.finding,
        frameworks=(question.framework,) if question.framework else (),
        present="after" if question.bad_is_after else "before",
        sets=sets.found,
        basis=basis,
        certainly_all=sets.complete,
        unexplained="",
    )


def _together(reasons: Iterable[Reason]) -> Iterator[Reason]:
    """Frameworks whose verdicts have the same reason are one reason."""
    alike: dict[Reason, list[str]] = {}
    for reason in reasons:
        if reason.finding is not None:
            yield reason
        else:
            alike.setdefault(reason._replace(frameworks=()), []).extend(reason.frameworks)
    for reason, frameworks in alike.items():
        yield reason._replace(frameworks=tuple(sorted(frameworks)))


def _text_of(finding: Finding) -> str:
    parts = [finding.message, *(evidence.text for evidence in finding.evidence)]
    return " ".join([*parts, *(remedy.text for remedy in finding.remedies)])


def _bases(bad: Snapshot) -> tuple[Basis, ...]:
    return ("files", "run") if bad.probes else ("files",)


def was_run(machine: Snapshot) -> bool:
    """Whether frameworks were run there; before a program is run, only the driver is started."""
    return any(probe.name != "cuda" for probe in machine.probes)


def verdicts(report: Report) -> Mapping[str, FrameworkReport]:
    return {item.name: item for item in report.frameworks}
