"""Why a log without a failure does not earn a tick.

A tick says that nothing is wrong. It has to be earned: each judgement here names something that a
log without a failure may still show, or lack. The first one that holds takes the tick away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from whygpu.causes.evidence.log_utilisation import idle_although_held, low_utilisation
from whygpu.diagnosis.for_people import (
    for_own_words,
    for_reported_fault,
    for_told_trouble,
)
from whygpu.diagnosis.guidance import (
    for_idle_gpu,
    for_lost_numbers,
    for_report,
    for_slow_steps,
    for_two_answers,
    for_work_without_gpu,
)
from whygpu.diagnosis.log_findings import lines_of, reason_for_cpu
from whygpu.model.explanation import Guidance
from whygpu.model.finding import Finding
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.readers.markdown import above_output, around_output
from whygpu.readers.work_progress import lost_numbers
from whygpu.tables.sentences import FEW_LINES

_OF_MESSAGES = late(
    r"(?<!\w)(?<!no )(?<!without )(?:messages?|warn(?:ings?|s)|errors?|log lines|logs an?)(?!\w)"
    r"|警告|报错|报的错|提示|信息|경고|오류|메시지|メッセージ|エラー|предупрежден|ошибк|сообщени|Meldung|Fehler"
    r"|mensaje|advertencia|avertissement|erreur",
    re.IGNORECASE,
)
"""What somebody calls the lines that they ask about."""
_SLOW_STEPS = ("files-read-in-training-process", "slow-small-or-input-bound")
"""If a library itself warns that the steps may be slow, a log without a failure is not fine."""


class _Seen(NamedTuple):
    """What is known of the log."""

    log: Log
    roots: Sequence[Finding]
    noise: Sequence[Finding]


def doubt_about(
    log: Log, roots: Sequence[Finding], noise: Sequence[Finding], *, has_findings: bool, fine: bool
) -> Guidance | None:
    """Why a log without a failure is not fine; None if nothing speaks against it.

    `fine`: the verdict so far is that nothing is wrong. `has_findings`: some cause was found,
    whether or not it is a root.
    """
    seen = _Seen(log, roots, noise)
    on_cpu = reason_for_cpu(roots) is not None
    doubt = next(filter(None, (judge(seen) for judge in _OF_THE_OUTPUT)), None)
    if doubt is None and not on_cpu:
        doubt = next(filter(None, (judge(seen) for judge in _OF_THE_DEVICE)), None)
    if doubt is not None or not fine or _is_about_messages(seen):
        return doubt
    # A GPU that is only listed does not answer somebody who reports trouble.
    form = None if has_findings or noise else for_reported_fault(log)
    return form or for_told_trouble(log) or (None if on_cpu else for_report(log))


def _is_about_messages(seen: _Seen) -> bool:
    """Whether a person writes about messages, where the log has some that are harmless."""
    shown = lines_of(seen.noise)
    if not shown:
        return False
    written = around_output(seen.log.lines) or above_output(seen.log.lines)
    return any(line.number in shown or _OF_MESSAGES.search(line.text) for line in written)


def _numbers_are_lost(seen: _Seen) -> Guidance | None:
    lost = lost_numbers(seen.log.lines)
    return for_lost_numbers(lost[0]) if lost else None


def _gpu_is_idle(seen: _Seen) -> Guidance | None:
    idle = low_utilisation(seen.log) or idle_although_held(seen.log)
    return for_idle_gpu(idle) if idle is not None else None


def _says_it_has_no_gpu(seen: _Seen) -> Guidance | None:
    reports = seen.log.without_gpu()
    return for_work_without_gpu(seen.log, reports) if reports else None


def _answers_differ(seen: _Seen) -> Guidance | None:
    return for_two_answers(seen.log)


def _person_says_so(seen: _Seen) -> Guidance | None:
    amid_output = bool(seen.roots or seen.noise) or len(seen.log.lines) > FEW_LINES
    return for_own_words(seen.log, amid_output=amid_output, harmless=lines_of(seen.noise))


def _library_warns_of_slow_steps(seen: _Seen) -> Guidance | None:
    slow = next((root for root in seen.roots if root.cause in _SLOW_STEPS), None)
    return for_slow_steps(slow) if slow is not None else None


_Judgement = Callable[[_Seen], Guidance | None]

_OF_THE_OUTPUT: tuple[_Judgement, ...] = (_numbers_are_lost, _gpu_is_idle)
_OF_THE_DEVICE: tuple[_Judgement, ...] = (
    _says_it_has_no_gpu,
    _answers_differ,
    _person_says_so,
    _library_warns_of_slow_steps,
)
"""Work on the CPU, or slow work. If the log gives the reason for the CPU, they add nothing."""
