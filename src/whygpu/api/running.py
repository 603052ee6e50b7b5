"""Verbs that run a program under a device policy: run and plan_run."""

from __future__ import annotations

import os
import signal
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, NamedTuple

from whygpu.api.arguments import checked
from whygpu.errors import UsageError
from whygpu.host.systems import STOP_SIGNALS, require_linux
from whygpu.model.policy import DevicePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from whygpu.launch.execution import Prepared
    from whygpu.launch.program_process import Ended
    from whygpu.model.explanation import Explanation
    from whygpu.model.memory_use import MemoryEnd
    from whygpu.model.policy import RunReport
    from whygpu.model.shortage import HopelessRequest
    from whygpu.model.snapshot import Snapshot


class Watch(NamedTuple):
    """What `api.run` calls during a run, so that the caller can show it."""

    before: Callable[[Prepared], None] = lambda prepared: None
    """With the plan, before the program starts."""
    at_end: Callable[[], None] = lambda: None
    """When the program has ended, before a signal can reach us again."""
    hopeless: Callable[[HopelessRequest], None] = lambda request: None
    """In another thread, when the program first asks for more GPU memory than it may ever have."""
    explaining: Callable[[], AbstractContextManager[None]] = nullcontext
    """Around the explanation of a failure. What it suppresses costs only the explanation."""
    explained: Callable[[Explanation], None] = lambda explanation: None
    estimating: Callable[[str], None] = lambda stage: None
    """With each stage of estimating what would have fitted."""


@checked
def plan_run(
    command: str | Sequence[str],
    policy: str | DevicePolicy = "",
    *,
    repair: bool = True,
    trace: bool = False,
) -> Prepared:
    """What `run` would change for a program, each change with its reason; nothing is run.

    Example:
        whygpu.plan_run("python train.py", "gpu:1 memory=4GiB").plan
    """
    require_linux("run")
    from whygpu.launch.execution import prepare
    from whygpu.launch.policy_options import parse_policy

    wanted = parse_policy(policy) if isinstance(policy, str) else policy
    return prepare(_words(command), wanted, os.environ, repair=repair, trace=trace)


@checked
def run(
    command: str | Sequence[str],
    policy: str | DevicePolicy = "",
    *,
    repair: bool = True,
    trace: bool = False,
    explain: bool = True,
    watch: Watch | None = None,
) -> RunReport:
    """Run a program under a device policy, repair what can be repaired, and prove where it ran.

    `policy` is one line such as "gpu:1 memory=4GiB cudnn=off require=gpu"; empty, the program runs
    as it is. PolicyError says why the machine cannot meet it, and then nothing is run.
    `repair=False` leaves what is wrong with the machine as it is; `trace=True` reports where each
    operation ran; `explain=False` does not explain a failure.

    Example:
        report = whygpu.run("python train.py --epochs 3", "gpu")
        report.exit_code, report.device
    """
    hooks = Watch() if watch is None else watch
    prepared = plan_run(command, policy, repair=repair, trace=trace)
    hooks.before(prepared)
    from whygpu.launch.execution import execute

    report, ended = execute(prepared.plan, os.environ, at_end=hooks.at_end, hopeless=hooks.hopeless)
    if report.policy.require_gpu and report.device == "cpu" and report.exit_code == 0:
        report = report._replace(exit_code=1)
    report = report._replace(signal=ended.signal, host_memory=ended.memory)
    if explain and ended.code != 0 and ended.signal not in STOP_SIGNALS:
        with hooks.explaining():
            report = _explained(report, ended, prepared, hooks)
    if not report.traced:
        return report
    from whygpu.launch.trace_merge import merge

    merged = merge([part for record in report.records for part in record.trace.values()])
    if any(record.frameworks and not record.complete for record in report.records):
        merged["notes"].append("a process was ended from outside; its operations are not counted")
    return report._replace(trace=merged)


def _words(command: str | Sequence[str]) -> list[str]:
    if isinstance(command, str):
        import shlex

        try:
            command = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"{error} in {command!r}", option="command") from error
    try:
        words = [os.fspath(word) for word in command]
    except TypeError:
        received = type(command).__name__
        raise UsageError(
            f"expected a command line, or a list of words, received {received}", option="command"
        ) from None
    if not words:
        raise UsageError("what should run? expected a command, such as python train.py")
    return words


def _explained(report: RunReport, ended: Ended, prepared: Prepared, watch: Watch) -> RunReport:
    """With what `explain` says about a failure."""
    text = _last_words(report, ended)
    if not text.strip():
        return report
    from whygpu.api.aftermath import memory_end_of
    from whygpu.api.logs import explain_text
    from whygpu.causes.evidence.illegal_instructions import SIGNAL
    from whygpu.launch.execution import seen_by_program
    from whygpu.model.explanation import STANDARD_ERROR

    refused = SIGNAL.search(text) is not None
    machine = seen_by_program(prepared.plan, os.environ, illegal_instruction=refused)
    memory = memory_end_of(report, ended, text, machine)
    name = STANDARD_ERROR if ended.error_text else ""
    explanation = explain_text(text, here=machine, memory=memory, name=name)
    watch.explained(explanation)
    if memory is not None:
        memory = _estimated(memory, report, machine, prepared, watch)
    return report._replace(explanation=explanation, out_of_memory=memory)


def _last_words(report: RunReport, ended: Ended) -> str:
    """Standard error, and what a shell would say of a signal.

    If standard error was not captured, use the exceptions that the processes recorded.
    """
    text = ended.error_text or "\n".join(record.memory.error for record in report.records)
    return f"{text}\n{signal.strsignal(ended.signal)}\n" if ended.signal else text


def _estimated(
    memory: MemoryEnd, report: RunReport, machine: Snapshot, prepared: Prepared, watch: Watch
) -> MemoryEnd:
    """With what would have fitted. Ctrl-C, and whatever fails here, costs no more than that."""
    from whygpu.api.aftermath import with_estimate
    from whygpu.launch.environment import changed
    from whygpu.model.memory_use import FitEstimate

    environ = changed(os.environ, prepared.plan.all_actions)
    try:
        return with_estimate(memory, report, machine, environ, watch.estimating)
    except KeyboardInterrupt:
        why = "it was interrupted"
    except Exception as error:
        why = f"whygpu failed at it: {type(error).__name__}: {error}"
    return memory._replace(estimate=FitEstimate("cannot-tell", why))
