"""Proves a fix: carries out remedies in a copy of the environment and examines the copy again."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from whygpu.fixing import copying
from whygpu.fixing.carrying_out import carry_out
from whygpu.fixing.copying import (
    NotCopied,
    copy_tree,
    linked_files,
    replace_in_text_files,
    start_up_files,
    written_files,
)
from whygpu.fixing.downloads import Download, expected
from whygpu.fixing.elsewhere import pip_setting
from whygpu.fixing.remedies import Environment, faults, is_fault, moved, steps_for
from whygpu.fixing.workshop import Workshop, remove
from whygpu.model.derived import and_list, installer_of
from whygpu.model.figures import counted, first_of
from whygpu.model.finding import Finding
from whygpu.model.fix import Attempt, CopyFacts, FixStep, Result
from whygpu.model.observed import Absent
from whygpu.model.remedy import Action, Install, LinkFile, steps_of
from whygpu.model.report import Report
from whygpu.model.target import Installer
from whygpu.model.units import size_text

MOST_ATTEMPTS = 12
_MOST_NAMED = 5
_RANKS = {"broken": 0, "cpu": 1, "gpu": 2}
"""Of the verdicts on a framework, the better the higher. An unknown one is lower than all."""
_RESERVE = 1 << 28
"""Bytes that stay free on the disk beside the copy."""
_UNPACKED = 3
"""The space that packages need, in sizes of their download: the download itself and its content.
The packages of tensorflow[and-cuda] 2.21.0 unpack to 1.9 times their size."""

Examine = Callable[[str, Mapping[str, str]], Report]
"""Examine the environment in a folder as a program with these variables would see it."""
Tell = Callable[[str], None]


class NotProven(Exception):
    """A copy would prove nothing; the message says why."""


class OriginalChanged(Exception):
    """A command wrote into files of the environment itself; the message names them."""

    def __init__(self, files: Sequence[str]) -> None:
        super().__init__(first_of(files, _MOST_NAMED))


class Proof(NamedTuple):
    steps: tuple[FixStep, ...]
    """Those that work, with the paths of the real environment."""
    attempts: tuple[Attempt, ...]
    copy: CopyFacts
    after: Report
    environ: Mapping[str, str]
    """The variables with which the copy was examined last."""


class _State(NamedTuple):
    report: Report
    environ: Mapping[str, str]
    steps: tuple[FixStep, ...]


def make_copy(shop: Workshop, tell: Tell) -> CopyFacts:
    """Copy the environment into the workshop. NotProven if there is no room."""
    began = time.monotonic()
    try:
        size = copying.size_of(shop.environment)
        free = shutil.disk_usage(shop.folder).free
        needed = size.small_bytes if shop.can_exchange else size.size_bytes
        if free < needed + _RESERVE:
            raise NotProven(
                f"a copy of the environment takes {size_text(needed)}, {size_text(_RESERVE)} must "
                f"stay free, and {shop.folder} has {size_text(free)} free"
            )
        cost = f"{size.files:,} files, {size_text(size.size_bytes)}"
        tell(f"copying the environment: {cost}, of which {size_text(needed)} take space")
        copied = copy_tree(
            shop.environment,
            shop.copy,
            lambda number: tell(f"copying the environment: {number:,} of {size.files:,} files"),
        )
        # Files that put folders of the environment on sys.path must name those of the copy.
        replace_in_text_files(shop.copy, start_up_files(shop.copy), shop.environment, shop.copy)
    except NotCopied as reason:
        raise NotProven(f"the environment cannot be copied: {reason}") from reason
    except OSError as error:
        raise NotProven(f"the environment cannot be copied: {error}") from error
    seconds = time.monotonic() - began
    return CopyFacts(size.files, size.size_bytes, copied, free, seconds, size.outside)


def prove(
    shop: Workshop,
    before: Report,
    environ: Mapping[str, str],
    examine: Examine,
    tell: Tell,
    wanted: Callable[[Finding], bool],
) -> Proof:
    """Try remedies in a copy until no further requested fault can be fixed."""
    facts = make_copy(shop, tell)
    there = moved_variables(environ, shop.environment, shop.copy)
    tell("examining the copy")
    copied = examine(shop.copy, there)
    if faults(copied) != faults(before):
        raise NotProven(
            "a copy of the environment does not show the same faults, so it would prove nothing: "
            f"{_difference(before, copied)}"
        )
    _stays_in_the_copy(copied, there)
    trial = _Trial(shop, examine, tell, wanted)
    try:
        best = trial.run(_State(copied, there, ()))
    except NotCopied as reason:
        raise NotProven(f"the copy could not be kept safe for a trial: {reason}") from reason
    return Proof(best.steps, tuple(trial.attempts), facts, best.report, best.environ)


def _stays_in_the_copy(copied: Report, environ: Mapping[str, str]) -> None:
    installer = _own_installer(copied)
    if installer.tool != "pip":
        return
    setting = pip_setting(os.path.expanduser(installer.python), environ)
    if setting:
        raise NotProven(
            f"pip is configured to install elsewhere ({setting}; `pip config debug` names the "
            "file), so it would change that place and not the copy"
        )


class _Trial:
    """Remedies, one after the other, in one copy."""

    def __init__(
        self, shop: Workshop, examine: Examine, tell: Tell, wanted: Callable[[Finding], bool]
    ) -> None:
        self._shop = shop
        self._examine = examine
        self._tell = tell
        self._wanted = wanted
        self._tried: set[tuple[str, str, Action | None]] = set()
        self._linked = linked_files(shop.copy, shop.environment)
        self.attempts: list[Attempt] = []

    def run(self, state: _State) -> _State:
        """The best state that can be reached. The copy is in that state afterwards."""
        best, beginnings = self._improve(state)
        for step, earlier in beginnings:
            # Nothing fixes this fault alone. Fixing it may have shown the next one.
            if len(self.attempts) >= MOST_ATTEMPTS or not _is_there(step, best.report):
                continue
            if len(best.steps) == len(state.steps) and self._next(earlier) is None:
                # The same step from the same state gives the same result: do not try it again.
                continue
            with self._way_back() as go_back:
                reached = self._attempt(best, step)
                end = self._improve(reached)[0] if reached is not None else best
                if _better(best.report, end.report):
                    best = end
                else:
                    go_back()
        return best

    def _improve(self, state: _State) -> tuple[_State, list[tuple[FixStep, _State]]]:
        """Keep each step that fixes a fault and causes no other.

        Returns the state that this reaches, which the copy is then in, and the steps that fixed a
        fault but caused another one, each with the state that it led to.
        """
        beginnings: list[tuple[FixStep, _State]] = []
        while len(self.attempts) < MOST_ATTEMPTS:
            step = self._next(state)
            if step is None:
                break
            with self._way_back(step) as go_back:
                reached = self._attempt(state, step)
                if reached is not None and _better(state.report, reached.report):
                    state = reached
                    continue
                go_back()
                if reached is not None:
                    beginnings.append((step, reached))
        return state, beginnings

    def _next(self, state: _State) -> FixStep | None:
        place = Environment(self._shop.copy, _own_installer(state.report), state.environ)
        for finding in state.report.root_causes:
            if not self._wanted(finding):
                continue
            for step in steps_for(finding, place):
                if (step.cause, step.subject, step.remedy.action) not in self._tried:
                    return step
        return None

    def _attempt(self, state: _State, step: FixStep) -> _State | None:
        """The state after a step; None if the step did not fix its fault."""
        action = step.remedy.action
        assert action is not None
        self._tried.add((step.cause, step.subject, action))
        shown = moved(step, self._shop.copy, self._shop.environment)
        trying = f"trying a remedy for {step.code} in the copy"
        self._tell(trying)
        began = time.monotonic()
        installer = _own_installer(state.report)
        download = self._download(action, installer, state.environ)
        if download is not None:
            free = shutil.disk_usage(self._shop.folder).free
            packages = counted(download.packages, "package")
            size = f"{packages}, {size_text(download.size_bytes)} to download"
            self._tell(f"{trying}; {size}, {size_text(free)} free")
            if free < download.size_bytes * _UNPACKED + _RESERVE:
                needed = size_text(download.size_bytes * _UNPACKED)
                reason = (
                    f"{size}: they need about {needed}, {size_text(_RESERVE)} must stay free, and "
                    f"{size_text(free)} are free"
                )
                self._note(shown, "prevented", reason, began, download)
                return None
        done = carry_out(
            action,
            installer,
            state.environ,
            self._shop.folder,
            on_line=lambda line: self._tell(f"{trying}: {line}"),
        )
        if done.failure:
            self._check_original()
            result: Result = "prevented" if done.hindrance else "failed"
            self._note(shown, result, done.failure, began, download)
            return None
        self._tell(f"examining the copy with the remedy for {step.code}")
        report = self._examine(self._shop.copy, done.environ)
        self._check_original()
        result = _result(state.report, report, step)
        causes = sorted({f"{f.code} {f.cause}" for f in report.root_causes if is_fault(f)})
        if result == "other-fault" and (busy := _of_others(state.report, report)):
            reason = f"its fault is gone, but {busy}; try again when that has ended"
            self._note(shown, "prevented", reason, began, download)
            return None
        self._note(shown, result, and_list(causes), began, download)
        if result == "no-effect":
            return None
        return _State(report, done.environ, (*state.steps, shown))

    def _check_original(self) -> None:
        """Stop if a command wrote into a file that the copy shares with the environment."""
        changed = written_files(self._shop.environment, self._linked)
        if changed:
            raise OriginalChanged(changed)

    def _download(
        self, action: Action, installer: Installer, environ: Mapping[str, str]
    ) -> Download | None:
        python = os.path.expanduser(installer.python)
        return expected(action, installer, python, environ, self._shop.folder)

    def _note(
        self, step: FixStep, result: Result, detail: str, began: float, download: Download | None
    ) -> None:
        size = None if download is None else download.size_bytes
        self.attempts.append(Attempt(step, result, detail, time.monotonic() - began, size))

    @contextmanager
    def _way_back(self, step: FixStep | None = None) -> Iterator[Callable[[], None]]:
        """A function that puts the copy back into its present state."""
        if step is not None and not _changes_files(step):
            yield lambda: None
            return
        saved = tempfile.mkdtemp(dir=self._shop.folder)
        tree = os.path.join(saved, "environment")

        def go_back() -> None:
            remove(self._shop.copy)
            os.rename(tree, self._shop.copy)

        try:
            copy_tree(self._shop.copy, tree, linked_from=0)
            yield go_back
        finally:
            remove(saved)


def _own_installer(report: Report) -> Installer:
    """pip or uv, never the tool of a project: that would change the project's files, and then the
    environment itself.
    """
    nobody = Absent("a copy that belongs to no project")
    return installer_of(report.snapshot)._replace(manager=nobody)


_OF_OTHER_PROCESSES = ("oom-other-process",)
"""Causes that come and go with what else runs on the GPU."""


def _changes_files(step: FixStep) -> bool:
    return any(isinstance(part, (Install, LinkFile)) for part in steps_of(step.remedy.action))


def _result(before: Report, after: Report, step: FixStep) -> Result:
    if _is_there(step, after):
        return "no-effect"
    return "works" if _better(before, after) else "other-fault"


def _of_others(before: Report, after: Report) -> str:
    """What other processes do at the moment, if that alone is new; it is no fault of the copy."""
    known = faults(before)
    new = [f for f in after.findings if is_fault(f) and (f.cause, f.subject) not in known]
    roots = [f for f in new if f in after.root_causes]
    if not roots or any(f.cause not in _OF_OTHER_PROCESSES for f in roots):
        return ""
    return roots[0].message


def _is_there(step: FixStep, report: Report) -> bool:
    return (step.cause, step.subject) in faults(report)


def _better(before: Report, after: Report) -> bool:
    """Fewer faults, none that was not there before, and no framework that can do less."""
    return faults(after) < faults(before) and not _worse(before, after)


def _worse(before: Report, after: Report) -> bool:
    """Whether a framework can do less than before, or whether that is no longer known."""
    now = {item.name: _RANKS.get(item.verdict, -1) for item in after.frameworks}
    return any(now.get(item.name, -1) < _RANKS.get(item.verdict, -1) for item in before.frameworks)


def _difference(before: Report, copied: Report) -> str:
    def names(report: Report, other: Report) -> str:
        more = faults(report) - faults(other)
        return and_list(sorted(f"{cause} ({subject})" for cause, subject in more))

    parts = []
    if missing := names(before, copied):
        parts.append(f"only the environment has {missing}")
    if added := names(copied, before):
        parts.append(f"only the copy has {added}")
    return "; ".join(parts)


def moved_variables(environ: Mapping[str, str], old: str, new: str) -> dict[str, str]:
    """Variables whose paths lead into one environment, for another."""

    def moved(item: str) -> str:
        return new + item[len(old) :] if item == old or item.startswith(f"{old}/") else item

    return {
        name: ":".join(moved(item) for item in value.split(":")) if old in value else value
        for name, value in environ.items()
    }
