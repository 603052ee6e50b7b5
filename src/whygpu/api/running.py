"""Verbs that run a program under a device policy: run and plan_run."""

from __future__ import annotations

import os
import signal
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from whygpu.api.arguments import checked
from whygpu.errors import UsageError
from whygpu.host.systems import KILLED, STOP_SIGNALS, require_linux
from whygpu.model.policy import DevicePolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from whygpu.launch.execution import Prepared
    from whygpu.launch.program_process import Ended
    from whygpu.model.explanation import Explanation
    from whygpu.model.memory_use import MemoryEnd
    from whygpu.model.policy import RunReport
    from whygpu.model.profile import ProcessProfile, ProfileAnswer, ProfileOptions
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
    profile: bool = False,
) -> Prepared:
    """What `run` would change for a program, each change with its reason; nothing is run.

    Example:
        whygpu.plan_run("python train.py", "gpu:1 memory=4GiB").plan
    """
    require_linux("run")
    from whygpu.launch.execution import prepare
    from whygpu.launch.policy_options import parse_policy

    wanted = parse_policy(policy) if isinstance(policy, str) else policy
    return prepare(_words(command), wanted, os.environ, repair=repair, trace=trace, profile=profile)


@checked
def run(
    command: str | Sequence[str],
    policy: str | DevicePolicy = "",
    *,
    repair: bool = True,
    trace: bool = False,
    profile: bool = False,
    profile_steps: str = "",
    explain: bool = True,
    watch: Watch | None = None,
) -> RunReport:
    """Run a program under a device policy, repair what can be repaired, and report where it ran.

    `policy` is one line such as "gpu:1 memory=4GiB cudnn=off require=gpu"; empty, the program runs
    as it is. PolicyError says why the machine cannot meet it, and then nothing is run.
    `repair=False` leaves what is wrong with the machine as it is; `trace=True` reports where each
    operation ran; `profile=True` reports why its training steps take as long as they do, for the
    steps "20..60" if `profile_steps` says so; `explain=False` does not explain a failure.

    Example:
        report = whygpu.run("python train.py --epochs 3", "gpu")
        report.exit_code, report.device
    """
    hooks = Watch() if watch is None else watch
    profiled_steps = parse_profile_steps(profile_steps)
    prepared = plan_run(command, policy, repair=repair, trace=trace, profile=profile)
    if profiled_steps.first is not None:
        plan = prepared.plan._replace(profile_from=profiled_steps.first)
        prepared = prepared._replace(plan=plan)
    hooks.before(prepared)
    from whygpu.launch.execution import execute

    report, ended = execute(prepared.plan, os.environ, at_end=hooks.at_end, hopeless=hooks.hopeless)
    if report.policy.require_gpu and report.device == "cpu" and report.exit_code == 0:
        report = report._replace(exit_code=1)
    report = report._replace(signal=ended.signal, host_memory=ended.memory)
    if explain and ended.code != 0 and ended.signal not in STOP_SIGNALS:
        with hooks.explaining():
            report = _explained(report, ended, prepared, hooks)
    if profile:
        from whygpu.profiling.judge import judged

        answer = judged(profiles_of(report), profiled_steps, on_gpu=report.device == "gpu")
        if any(record.profile is not None and not record.complete for record in report.records):
            answer = answer._replace(notes=(*answer.notes, _KILLED))
        report = report._replace(profile=answer)
    if not report.traced:
        return report
    from whygpu.launch.trace_merge import merge

    merged = merge([part for record in report.records for part in record.trace.values()])
    if any(record.frameworks and not record.complete for record in report.records):
        reasons = merged["notes" if merged["ops"] else "nothing_because"]
        reasons.append("a process was ended from outside; its operations are not counted")
    if not any(record.frameworks for record in report.records):
        merged["nothing_because"].append("no process reported that it imported a framework")
    return report._replace(trace=merged)


_KILLED = (
    "a process was killed: what it did after its profile was last saved, up to a minute before, is "
    "not counted"
)


class Profiled:
    """What `with whygpu.profile() as profiled:` gives: `answer` is there after the block, also if
    that failed."""

    answer: ProfileAnswer | None = None


@contextmanager
def profile_block(
    steps: str = "", show: Callable[[ProfileAnswer], None] = lambda answer: None
) -> Iterator[Profiled]:
    """Profile the block, also if it fails or is ended by Ctrl-C, as in notebooks.

    `show` is called with the answer, unless the block failed before it had made enough steps.
    """
    from whygpu.launch.inprocess_profile import recorded
    from whygpu.profiling.judge import judged

    wanted = parse_profile_steps(steps, option="steps")
    profiled = Profiled()
    profiles: list[ProcessProfile] = []
    failed = True
    try:
        with recorded() as profiles:
            yield profiled
        failed = False
    finally:
        if profiles:
            profiled.answer = judged(profiles, wanted, on_gpu=_has_started_gpu())
            if profiled.answer.window is not None or not failed:
                show(profiled.answer)


def _has_started_gpu() -> bool:
    """Whether PyTorch or JAX in this process computes on a GPU, or TensorFlow has one."""
    from whygpu.launch.inprocess import gpus_in_use

    return gpus_in_use()


def profile_trace(report: RunReport, profile_steps: str = "") -> dict[str, Any]:
    """The profile of a run as a trace that ui.perfetto.dev opens.

    Example:
        report = whygpu.run("python train.py", profile=True)
        json.dump(whygpu.profile_trace(report), open("trace.json", "w"))
    """
    from whygpu.profiling.perfetto import trace_events

    steps = parse_profile_steps(profile_steps)
    return trace_events(profiles_of(report), steps, on_gpu=report.device == "gpu")


def profiles_of(report: RunReport) -> tuple[ProcessProfile, ...]:
    return tuple(record.profile for record in report.records if record.profile is not None)


def parse_profile_steps(text: str, option: str = "profile_steps") -> ProfileOptions:
    """ "20..60", "20.." or "..60"; empty for the steps after the first few."""
    from whygpu.model.profile import ProfileOptions

    if not text:
        return ProfileOptions()
    first, dots, last = text.partition("..")
    numbers = [int(word) if word.isdecimal() and len(word) < 10 else None for word in (first, last)]
    is_range = bool(dots) and all(
        number is not None or not word for number, word in zip(numbers, (first, last), strict=True)
    )
    begin, end = numbers
    if not is_range or (begin is not None and end is not None and end < begin + 5):
        raise UsageError(
            "expected a range of at least 5 steps, such as 20..60",
            option=option,
            value=text,
        )
    return ProfileOptions(begin, end)


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
    from whygpu.api.logs import explain_text
    from whygpu.api.memory_after_run import memory_end_of
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
    if not ended.signal or _killed_by_somebody(ended):
        return text
    return f"{text}\n{signal.strsignal(ended.signal)}\n"


def _killed_by_somebody(ended: Ended) -> bool:
    """SIGKILL that the kernel did not send for lack of memory: it counts those that it sends."""
    return -ended.signal == KILLED and ended.memory is not None and ended.memory.kills == 0


def _estimated(
    memory: MemoryEnd, report: RunReport, machine: Snapshot, prepared: Prepared, watch: Watch
) -> MemoryEnd:
    """With what would have fitted. After Ctrl-C, or if this fails, only this part is missing."""
    from whygpu.api.memory_after_run import with_estimate
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
