"""From the profiles of a run's processes to the answer."""

from __future__ import annotations

import math
import os.path
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import fmean

from whygpu.model.device_recording import Span
from whygpu.model.profile import (
    FEWEST_SAMPLES,
    Category,
    Gain,
    ProcessProfile,
    ProfileAnswer,
    ProfileOptions,
    ProfileVerdict,
    TimeShare,
    WorkerUse,
)
from whygpu.profiling import forward_only
from whygpu.profiling.attribution import (
    Sample,
    Spent,
    enclosing_functions,
    evaluating_in_each_step,
    samples_of,
    shares_of,
    spent_by,
)
from whygpu.profiling.crowding import SURELY, Crowding, crowding_of, rate
from whygpu.profiling.device_costs import DeviceCosts, device_costs
from whygpu.profiling.device_notes import device_notes, with_device_details
from whygpu.profiling.device_time import DeviceTime, part
from whygpu.profiling.device_time import divided as divided_by_device
from whygpu.profiling.evaluation_calls import evaluating_stacks
from whygpu.profiling.evaluation_mode import with_evaluation_mode
from whygpu.profiling.gains import computing_gains, predicted_gains
from whygpu.profiling.input_pipelines import (
    input_detail,
    input_sources,
    input_work,
    is_parallel,
    tf_data_source,
    with_framework_profile,
    with_known_data,
    with_restarts,
)
from whygpu.profiling.recompilation import why_recompiled
from whygpu.profiling.spans import Lookup, common, joined, seconds_of
from whygpu.profiling.stack_kinds import OF_EVALUATION, StackKind
from whygpu.profiling.step_costs import StepCosts
from whygpu.profiling.steps import (
    SLOWED_DOWN,
    StepsFound,
    find_steps,
    most_steps,
    slowdown,
    steps_between,
)
from whygpu.profiling.tf_data_profile import python_stage

LARGEST_UNKNOWN = 0.25
WORTH_NAMING = 0.15
"""A smaller share of the time is no bottleneck."""
ARRAYS_WORTH_NAMING = 1 / 3
"""Taking batches out of arrays in memory belongs to what a step of Keras costs. No other input
pipeline would be faster, so that a smaller share, as short steps have it, is no bottleneck."""
RECURRING = 3
"""Quarters of the window, and steps."""
_HARMLESS: frozenset[Category] = frozenset({"computing", "synchronisation", "unknown"})
"""While the program waits for a result, the GPU computes: that is no bottleneck by itself."""
_WORK: frozenset[Category] = frozenset({"computing", "unknown"})


def judged(
    profiles: Sequence[ProcessProfile], options: ProfileOptions, *, on_gpu: bool
) -> ProfileAnswer:
    """The answer for the process that trains: the one with the most steps."""
    chosen = chosen_profile(profiles)
    if chosen is None:
        return ProfileAnswer("nothing-recorded", on_gpu)
    notes = _notes(profiles, on_gpu)
    steps = steps_of(chosen, options)
    if steps is None:
        return ProfileAnswer("no-steps", on_gpu, notes=(*notes, _why_no_steps(chosen, options)))
    return _answer(chosen, steps, on_gpu, notes)


def chosen_profile(profiles: Sequence[ProcessProfile]) -> ProcessProfile | None:
    """The profile of the process that trains; None if nothing usable was recorded."""
    recorded = [profile for profile in profiles if _is_consistent(profile)]
    return max(recorded, key=lambda each: (most_steps(each), each.seconds), default=None)


def steps_of(profile: ProcessProfile, options: ProfileOptions) -> StepsFound | None:
    return find_steps(profile, options, _seconds_by_call(profile))


def _is_consistent(profile: ProcessProfile) -> bool:
    """The program could have written anything into its record."""
    columns = (profile.stack_of, profile.thread_seconds, profile.process_seconds)
    return (
        bool(profile.times)
        and all(len(column) == len(profile.times) for column in columns)
        and all(0 <= number < len(profile.stacks) for number in profile.stack_of)
        and all(0 <= place < len(profile.places) for stack in profile.stacks for place in stack)
        and all(marks.stride > 0 for marks in profile.marks)
    )


def _answer(
    profile: ProcessProfile, steps: StepsFound, on_gpu: bool, notes: Sequence[str]
) -> ProfileAnswer:
    samples = samples_between(profile, steps, steps.begin, steps.end, on_gpu)
    notes = (*notes, *_named_like_evaluation(functions_of_the_step(profile, steps)))
    samples, steps = _without_pauses(samples, steps, profile)
    samples, once = _without_single_compilation(samples, steps)
    recompiled = why_recompiled(profile.compilations, steps.begin, steps.end)
    if recompiled.change == "unknown":
        samples = _with_compiling_evaluation(samples)
    if once >= 0.05 * steps.window.seconds:
        notes = (*notes, f"{once:.1f} s of compilation came once, and is not counted")
    steps = _shorter(steps, once)
    device = _device_time(samples, steps, profile) if on_gpu else None
    effective = _effective_samples(samples)
    if device is not None:
        effective = _effective_samples(device.recorded)
        device, steps = _without_recording(device, steps, profile)
        samples = device.taken
    divided = with_framework_profile(samples, profile) if device is None else device.samples
    device_step = _device_costs(profile, steps, device)
    divided, steps = _with_backlog(divided, steps, device_step)
    crowding = crowding_of(profile, steps)
    notes = (*notes, *crowding.notes())
    divided = with_known_data(with_restarts(divided), profile)
    sources = input_sources(divided)
    workers = _worker_use(profile.workers, steps)
    waited = fmean(_worker_use([each.waiting for each in profile.workers], steps) or [0.0])
    shares = shares_of(divided, steps.window, input_detail(sources, workers, waited, profile))
    shares = tuple(
        share._replace(detail=recompiled.text) if share.category == "compilation" else share
        for share in shares
    )
    margin = _margin(shares, effective)
    count = steps.window.steps
    costs = StepCosts(
        step=steps.window.step_seconds,
        spent={name: _scaled(spent, count) for name, spent in spent_by(divided).items()},
        input_sources={name: seconds / count for name, seconds in sources.items()},
        cores=profile.cores,
        workers=workers,
        workers_waited=waited,
        free_cores=math.inf if crowding.free is None else crowding.free,
        crowded=crowding.waited,
        parallel_stages=is_parallel(profile),
        python_stage=python_stage(profile, sources.get("tf.data", 0.0), steps),
        compiled_calls=sum(
            each.seconds for each in profile.compilations if steps.begin <= each.end <= steps.end
        )
        / count,
        own_code=_in_own_code(divided) / count + margin * steps.window.step_seconds,
        compilation_cure=recompiled.cure(steps.family),
        input_work=_scaled(input_work(samples, divided), count),
        device=device_step,
    )
    notable = _without_usual_input(shares, sources)
    verdict = _verdict(notable, effective, margin, on_gpu=on_gpu, timed=device is not None)
    doubt = ""
    if verdict == "waiting":
        doubt = _doubt(notable, spent_by(divided), sources, crowding)
    elif verdict == "computing" and device is None:
        doubt = _hidden(notable, crowding)
    if verdict in ("computing", "waiting"):
        without_training = forward_only.seconds_without_training(profile, steps, samples)
        if without_training >= WORTH_NAMING * steps.window.seconds:
            doubt = doubt or forward_only.doubt(without_training, steps.window.seconds)
    if doubt:
        verdict = "unclear"
    return ProfileAnswer(
        verdict,
        on_gpu,
        doubt=doubt,
        gpu_timed=device is not None,
        window=steps.window,
        shares=with_device_details(shares, costs),
        gains=_gains(verdict, costs),
        samples=len(samples),
        margin=margin,
        cost=profile.cost_seconds / max(profile.seconds, 1e-9),
        crowded=costs.crowded,
        before_seconds=steps.begin,
        compiling_before=sum(
            each.seconds for each in profile.compilations if each.end <= steps.begin
        ),
        after_seconds=max(profile.seconds - steps.end, 0.0),
        after_mainly=_main_category(
            samples_between(profile, steps, steps.end, profile.seconds, on_gpu)
        ),
        notes=(*notes, *device_notes(profile, steps, costs.device)) if on_gpu else tuple(notes),
    )


def samples_between(
    profile: ProcessProfile, steps: StepsFound, begin: float, end: float, on_gpu: bool
) -> list[Sample]:
    """The samples of a part of the time, each with what the program was doing."""
    samples = samples_of(
        profile,
        begin,
        end,
        enclosing=enclosing_functions(profile, steps).union(functions_of_the_step(profile, steps)),
        evaluating=evaluating_stacks(profile, steps),
        on_gpu=on_gpu,
        family=steps.family,
    )
    return with_evaluation_mode(samples, profile, steps)


def functions_of_the_step(profile: ProcessProfile, steps: StepsFound) -> frozenset[tuple[str, str]]:
    """(file, function) of what each step calls, although it is named like an evaluation."""
    if steps.marks.stride > 1:
        # Of so many steps, the ends of most were not kept.
        return frozenset()
    return evaluating_in_each_step(profile, steps.begin, steps.end, steps.marks.times)


def _named_like_evaluation(functions: Collection[tuple[str, str]]) -> Iterator[str]:
    for file, function in sorted(functions):
        yield (
            f"{function}() in {os.path.basename(file)} is called in each step, so it counts as a "
            f"part of the step, not as evaluation"
        )


def _main_category(samples: Sequence[Sample]) -> Category | None:
    """What took more than half of the time; None if nothing did, or it is not known."""
    spent = {name: each.seconds for name, each in spent_by(samples).items()}
    largest = max(spent, key=lambda name: spent[name], default=None)
    if largest is None or largest == "unknown" or spent[largest] <= sum(spent.values()) / 2:
        return None
    return largest


def _gains(verdict: ProfileVerdict, costs: StepCosts) -> tuple[Gain, ...]:
    if verdict == "waiting":
        return predicted_gains(costs)
    return computing_gains(costs) if verdict == "computing" else ()


def _without_pauses(
    samples: list[Sample], steps: StepsFound, profile: ProcessProfile
) -> tuple[list[Sample], StepsFound]:
    """Leave out the time in which the program waited for the framework's profiler."""
    pauses = joined(Span(*pause) for pause in profile.recording.pauses if len(pause) == 2)
    if not pauses:
        return samples, steps
    inside = Lookup(pauses)
    kept = []
    for each in samples:
        # No sample may have been taken during a pause: then the next one covers it.
        stretch = [Span(each.end - each.seconds, each.end)]
        paused = seconds_of(common(stretch, pauses))
        if each.end not in inside and paused < each.seconds:
            kept.append(part(each, 1 - paused / each.seconds))
    window = [Span(steps.begin, steps.end)]
    return kept, _shorter(steps, seconds_of(common(pauses, window)))


def _without_recording(
    device: DeviceTime, steps: StepsFound, profile: ProcessProfile
) -> tuple[DeviceTime, StepsFound]:
    """Leave out the steps that the framework's profiler slowed down, if enough others are there."""
    slowed = slowdown(steps, profile.recording) or 1.0
    if slowed < SLOWED_DOWN or _effective_samples(device.others) < FEWEST_SAMPLES:
        return device, steps
    run = profile.recording
    count = steps_between(steps.marks, max(run.begin, steps.begin), min(run.end, steps.end))
    recorded = common([Span(run.begin, run.end)], [Span(steps.begin, steps.end)])
    shorter = _shorter(steps, seconds_of(recorded))
    return (
        device._replace(inside=[], recorded=[]),
        shorter._replace(window=shorter.window._replace(left_out=count)),
    )


def _shorter(steps: StepsFound, seconds: float) -> StepsFound:
    window = steps.window._replace(seconds=max(steps.window.seconds - seconds, 1e-9))
    return steps._replace(window=window)


def _device_time(
    samples: Sequence[Sample], steps: StepsFound, profile: ProcessProfile
) -> DeviceTime | None:
    """None if the GPU's work was not recorded, or hardly any step of the window with it."""
    if profile.device is None or not profile.device.kernels:
        return None
    found = divided_by_device(
        samples,
        profile.device,
        inner_source=tf_data_source(profile),
        slowed=max(slowdown(steps, profile.recording) or 1.0, 1.0),
    )
    return found if _effective_samples(found.recorded) >= FEWEST_SAMPLES else None


def _device_costs(
    profile: ProcessProfile, steps: StepsFound, time: DeviceTime | None
) -> DeviceCosts | None:
    if time is None or profile.device is None:
        return None
    recording = profile.device
    gpu = next((each for each in profile.gpus if each.number == recording.device), None)
    count = steps_between(steps.marks, recording.begin, recording.end)
    return device_costs(
        recording,
        time,
        count or recording.seconds / steps.window.step_seconds,
        family=steps.family,
        backend=_backend(profile, steps),
        calls=_executions(profile) / max(steps.marks.seen, 1),
        gpu=gpu,
    )


def _with_backlog(
    samples: list[Sample], steps: StepsFound, device: DeviceCosts | None
) -> tuple[list[Sample], StepsFound]:
    """If the GPU computes steps more slowly than the program launches them, count the time that it
    needs for them: it comes later, when the program waits for the GPU or for the profiler."""
    if device is None or not device.is_behind:
        return samples, steps
    missing = (device.busy - steps.window.step_seconds) * steps.window.steps
    if missing <= 0:
        return samples, steps
    computing = Sample(missing, StackKind("computing", None, None), 0.0, 0.0, 0.0)
    return [*samples, computing], _shorter(steps, -missing)


def _executions(profile: ProcessProfile) -> int:
    """Of functions that JAX has compiled, operations outside of a function included."""
    jitted = ("jax ", "jax-operation")
    return sum(marks.seen for marks in profile.marks if marks.key.startswith(jitted))


def _backend(profile: ProcessProfile, steps: StepsFound) -> str:
    """Of Keras: the framework whose profiler has seen its steps."""
    if steps.family != "keras":
        return ""
    name = profile.recording.profiler.partition("'")[0]
    return {"PyTorch": "torch", "JAX": "jax"}.get(name, "tensorflow")


def _without_single_compilation(
    samples: list[Sample], steps: StepsFound
) -> tuple[list[Sample], float]:
    """Leave out compilation that does not come back, and say how many seconds that was.

    Something new in a later epoch is compiled once, which may take longer than all steps. What
    slows the steps is compiled again and again: in several steps and most quarters of the window.
    """
    compiling = [sample for sample in samples if sample.kind.category == "compilation"]
    if not compiling:
        return samples, 0.0
    begin = samples[0].end - samples[0].seconds
    quarter = max((samples[-1].end - begin) / 4, 1e-9)
    quarters = {min(int((sample.end - begin) / quarter), 3) for sample in compiling}
    compiled_in = {bisect_left(steps.marks.times, sample.end) for sample in compiling}
    if min(len(quarters), len(compiled_in)) >= RECURRING:
        return samples, 0.0
    rest = [sample for sample in samples if sample.kind.category != "compilation"]
    return rest, sum(sample.seconds for sample in compiling)


def _with_compiling_evaluation(samples: list[Sample]) -> list[Sample]:
    """What each evaluation compiles again is a part of it, if nothing shows how to avoid that.

    Keras' predict() and evaluate() make, and trace, a new tf.data pipeline in each call.
    """
    return [
        sample._replace(kind=sample.kind._replace(category="evaluation", source=""))
        if sample.kind.category == "compilation" and sample.kind.source == OF_EVALUATION
        else sample
        for sample in samples
    ]


def _effective_samples(samples: Sequence[Sample]) -> float:
    """How many samples of equal weight would say as much: long ones say little for their length."""
    squares = sum(sample.seconds**2 for sample in samples)
    return sum(sample.seconds for sample in samples) ** 2 / squares if squares else 0.0


def _margin(shares: Sequence[TimeShare], effective: float) -> float:
    """Two standard errors of the largest share that is not computing."""
    others = [share.share for share in shares if share.category != "computing"]
    largest = max(others, default=0.0)
    return 2 * (largest * (1 - largest) / effective) ** 0.5 if effective else 1.0


def _without_usual_input(
    shares: Sequence[TimeShare], sources: Mapping[str, object]
) -> list[TimeShare]:
    usual = set(sources) == {"keras arrays"}
    return [
        share
        for share in shares
        if not (usual and share.category == "input" and share.share < ARRAYS_WORTH_NAMING)
    ]


def _verdict(
    shares: Sequence[TimeShare], samples: float, margin: float, *, on_gpu: bool, timed: bool
) -> ProfileVerdict:
    unknown = sum(share.share for share in shares if share.category == "unknown")
    harmless = _WORK if timed else _HARMLESS
    largest = max((share.share for share in shares if share.category not in harmless), default=0.0)
    if samples < FEWEST_SAMPLES or unknown > max(LARGEST_UNKNOWN, largest):
        return "unclear"
    if largest < WORTH_NAMING:
        return "computing"
    if largest - margin < SURELY:
        return "unclear"
    # A GPU may have computed meanwhile: then it is the limit, and nothing else matters.
    return "unclear" if on_gpu and not timed else "waiting"


def _doubt(
    shares: Sequence[TimeShare],
    spent: Mapping[Category, Spent],
    sources: Mapping[str, object],
    crowding: Crowding,
) -> str:
    """Why the largest share may be due to other programs on the machine; empty if it is not."""
    largest = next(share.category for share in shares if share.category not in _HARMLESS)
    return crowding.doubt(
        spent[largest],
        sum(each.seconds for each in spent.values()),
        of_own_threads=largest == "input" and set(sources) == {"keras arrays"},
    )


def _hidden(shares: Sequence[TimeShare], crowding: Crowding) -> str:
    """Why something may take a noticeable share on another machine; empty if it does not."""
    largest = max((each.share for each in shares if each.category not in _HARMLESS), default=0.0)
    computing = sum(each.share for each in shares if each.category == "computing")
    return crowding.hides(largest, computing, WORTH_NAMING)


def _scaled(spent: Spent, count: int) -> Spent:
    return Spent(*(value / max(count, 1) for value in spent))


def _seconds_by_call(profile: ProcessProfile) -> Mapping[str, float]:
    """How long the program was in calls of each name, by the text of its innermost frame."""
    found: dict[str, float] = {}
    for number in range(1, len(profile.times)):
        stack = profile.stacks[profile.stack_of[number]]
        if stack:
            name = profile.places[stack[0]].text.partition("(")[0].rpartition(".")[2]
            seconds = profile.times[number] - profile.times[number - 1]
            found[name] = found.get(name, 0.0) + seconds
    return found


def _in_own_code(samples: Sequence[Sample]) -> float:
    """Seconds in the function with most of the program's own code, whatever it does there."""
    own: dict[tuple[str, str], float] = {}
    whole: dict[tuple[str, str], float] = {}
    for sample in samples:
        called = sample.kind.called
        if called is None:
            continue
        function = (called.file, called.function)
        whole[function] = whole.get(function, 0.0) + sample.seconds
        if sample.kind.category == "program":
            own[function] = own.get(function, 0.0) + sample.seconds
    return whole[max(own, key=lambda function: own[function])] if own else 0.0


def _worker_use(workers: Sequence[WorkerUse], steps: StepsFound) -> tuple[float, ...]:
    """The share of a core that each child process used in the window."""
    rates = (rate(worker, steps) for worker in workers)
    return tuple(each for each in rates if each is not None)


def _notes(recorded: Sequence[ProcessProfile], on_gpu: bool) -> tuple[str, ...]:
    notes = []
    training = [profile for profile in recorded if most_steps(profile)]
    if len(training) > 1:
        notes.append(f"of {len(training)} processes that train, one was judged")
    if not on_gpu:
        notes.append(
            "there was no GPU: copies to it, launches and its clocks are left out, and waiting for "
            "a result counts as computing"
        )
    return tuple(notes)


def _why_no_steps(profile: ProcessProfile, options: ProfileOptions) -> str:
    made = most_steps(profile)
    if not made:
        return (
            "no step was seen: whygpu knows steps of PyTorch optimizers, batches of Keras fit, "
            "calls of tf.function, of jitted functions and of GradientTape.gradient(), and runs of "
            "sessions"
        )
    if options.first is not None:
        return f"{made} steps were recorded, and fewer than 5 of them in the given range"
    return f"only {made} steps of one kind were recorded: at least 7 are needed"
