"""From the profiles of a run's processes to the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whygpu.model.profile import (
    Category,
    ProcessProfile,
    ProfileAnswer,
    ProfileOptions,
    ProfileVerdict,
    TimeShare,
    WorkerUse,
    percent_text,
)
from whygpu.profiling.attribution import Sample, Spent, samples_of, shares_of, spent_by
from whygpu.profiling.gains import StepCosts, predicted_gains
from whygpu.profiling.steps import StepsFound, find_steps, most_steps

FEWEST_SAMPLES = 40
"""With fewer, a share of 10 % would be two to six samples."""
LARGEST_UNKNOWN = 0.25
WORTH_NAMING = 0.15
"""A smaller share of the time is no bottleneck."""
RECURRING_QUARTERS = 3
CROWDED = 0.1
"""Of the time; above it, the answer says that the machine was busy with something else."""
_HARMLESS: frozenset[Category] = frozenset({"computing", "synchronisation", "unknown"})
"""While the program waits for a result, the GPU computes: that is no bottleneck by itself."""


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
    samples = samples_of(
        profile,
        steps.begin,
        steps.end,
        family=steps.family,
        step_name=steps.step_name,
        on_gpu=on_gpu,
    )
    samples, once = _without_single_compilation(samples)
    if once >= 0.05 * steps.window.seconds:
        notes = (*notes, f"{once:.1f} s of compilation came once, and is not counted")
    window = steps.window._replace(seconds=max(steps.window.seconds - once, 1e-9))
    steps = steps._replace(window=window)
    samples = _with_framework_profile(samples, profile)
    crowded = _crowded_share(profile, steps)
    if crowded >= CROWDED:
        notes = (
            *notes,
            f"for {percent_text(crowded)} of the time the main thread waited for a free core: more "
            f"runs on this machine than its {profile.cores} cores can do, so times vary",
        )
    sources = _input_sources(samples)
    workers = _worker_use(profile, steps)
    shares = shares_of(samples, steps.window, _input_detail(sources, workers, profile))
    count = steps.window.last - steps.window.first
    costs = StepCosts(
        step=steps.window.step_seconds,
        spent={name: _scaled(spent, count) for name, spent in spent_by(samples).items()},
        input_sources={name: seconds / count for name, seconds in sources.items()},
        cores=profile.cores,
        workers=workers,
        parallel_stages=_is_parallel(profile),
    )
    effective = _effective_samples(samples)
    verdict = _verdict(shares, effective, on_gpu)
    return ProfileAnswer(
        verdict,
        on_gpu,
        window=steps.window,
        shares=shares,
        gains=predicted_gains(costs) if verdict == "waiting" else (),
        samples=len(samples),
        margin=_margin(shares, effective),
        cost=profile.cost_seconds / max(profile.seconds, 1e-9),
        before_seconds=steps.begin,
        compiling_before=sum(
            each.seconds for each in profile.compilations if each.end <= steps.begin
        ),
        notes=tuple(notes),
    )


def _without_single_compilation(samples: list[Sample]) -> tuple[list[Sample], float]:
    """Leave out compilation that does not come back, and say how many seconds that was.

    Something new in a later epoch is compiled once. What slows the steps is compiled again and
    again: in most quarters of the window.
    """
    compiling = [sample for sample in samples if sample.kind.category == "compilation"]
    if not compiling:
        return samples, 0.0
    begin = samples[0].end - samples[0].seconds
    quarter = max((samples[-1].end - begin) / 4, 1e-9)
    quarters = {min(int((sample.end - begin) / quarter), 3) for sample in compiling}
    if len(quarters) >= RECURRING_QUARTERS:
        return samples, 0.0
    rest = [sample for sample in samples if sample.kind.category != "compilation"]
    return rest, sum(sample.seconds for sample in compiling)


def _effective_samples(samples: Sequence[Sample]) -> float:
    """How many samples of equal weight would say as much: long ones say little for their length."""
    squares = sum(sample.seconds**2 for sample in samples)
    return sum(sample.seconds for sample in samples) ** 2 / squares if squares else 0.0


def _margin(shares: Sequence[TimeShare], effective: float) -> float:
    """Two standard errors of the largest share that is not computing."""
    others = [share.share for share in shares if share.category != "computing"]
    largest = max(others, default=0.0)
    return 2 * (largest * (1 - largest) / effective) ** 0.5 if effective else 1.0


def _verdict(shares: Sequence[TimeShare], samples: float, on_gpu: bool) -> ProfileVerdict:
    unknown = sum(share.share for share in shares if share.category == "unknown")
    largest = max((share.share for share in shares if share.category not in _HARMLESS), default=0.0)
    if samples < FEWEST_SAMPLES or unknown > max(LARGEST_UNKNOWN, largest):
        return "unclear"
    if largest < WORTH_NAMING:
        return "computing"
    # A GPU may have computed meanwhile: then it is the limit, and nothing else matters.
    return "unclear" if on_gpu else "waiting"


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


def _with_framework_profile(samples: list[Sample], profile: ProcessProfile) -> list[Sample]:
    """Computing inside a compiled function is divided as the framework's own profiler saw it."""
    seen = profile.framework
    if seen is None or seen.seconds <= 0 or seen.input_seconds <= 0:
        return samples
    waiting = min(seen.input_seconds / seen.seconds, 1.0)
    divided = []
    for sample in samples:
        if sample.kind.category != "computing":
            divided.append(sample)
            continue
        kind = sample.kind._replace(category="input", source=_tf_data_source(profile))
        divided += [_part(sample, 1 - waiting), _part(sample._replace(kind=kind), waiting)]
    return divided


def _tf_data_source(profile: ProcessProfile) -> str:
    """Keras passes the batches of a PyDataset or a generator through tf.data as well."""
    stages = profile.framework.stages if profile.framework is not None else ()
    from_python = bool(stages) and "Generator" in stages[0].name
    return "keras data" if from_python else "tf.data"


def _part(sample: Sample, share: float) -> Sample:
    return sample._replace(
        seconds=sample.seconds * share,
        thread_seconds=sample.thread_seconds * share,
        process_seconds=sample.process_seconds * share,
    )


def _input_sources(samples: Sequence[Sample]) -> dict[str, float]:
    found: dict[str, float] = {}
    for sample in samples:
        if sample.kind.category == "input":
            found[sample.kind.source] = found.get(sample.kind.source, 0.0) + sample.seconds
    return found


def _crowded_share(profile: ProcessProfile, steps: StepsFound) -> float:
    return 0.0 if profile.waited is None else _rate(profile.waited, steps) or 0.0


def _rate(curve: WorkerUse, steps: StepsFound) -> float | None:
    """How fast a curve of seconds grew in the window; None if it does not cover half of it."""
    inside = [
        (time, seconds)
        for time, seconds in zip(curve.times, curve.seconds, strict=False)
        if steps.begin <= time <= steps.end
    ]
    elapsed = inside[-1][0] - inside[0][0] if inside else 0.0
    if elapsed <= 0.5 * steps.window.seconds:
        return None
    return (inside[-1][1] - inside[0][1]) / elapsed


def _worker_use(profile: ProcessProfile, steps: StepsFound) -> tuple[float, ...]:
    """The share of a core that each child process used in the window."""
    rates = (_rate(worker, steps) for worker in profile.workers)
    return tuple(rate for rate in rates if rate is not None)


def _input_detail(
    sources: Mapping[str, float], workers: Sequence[float], profile: ProcessProfile
) -> str:
    if not sources:
        return ""
    source = max(sources, key=lambda name: sources[name])
    if source == "workers" and workers:
        busy = 100 * sum(workers) / len(workers)
        count = f"{len(workers)} worker processes" if len(workers) > 1 else "one worker process"
        return f"{count} of the DataLoader, busy {busy:.0f} % of the time"
    if source == "tf.data" and profile.framework is not None and profile.framework.stages:
        stage = profile.framework.stages[0]
        return f"tf.data: most of it in the stage {stage.name}"
    return _DETAILS.get(source, source)


_DETAILS = {
    "one process": "the DataLoader has no worker processes",
    "workers": "the DataLoader's worker processes are too slow",
    "starting workers": "the DataLoader starts its worker processes again",
    "tf.data": "tf.data",
    "keras data": "Keras takes the data from Python",
    "a generator": "a generator of the program",
    "a function": "a function of the program",
}


def _is_parallel(profile: ProcessProfile) -> bool:
    seen = profile.framework
    return seen is not None and bool(seen.stages) and "Parallel" in seen.stages[0].name


def _notes(recorded: Sequence[ProcessProfile], on_gpu: bool) -> tuple[str, ...]:
    notes = []
    training = [profile for profile in recorded if most_steps(profile)]
    if len(training) > 1:
        notes.append(f"of {len(training)} processes that train, one was judged")
    if on_gpu:
        notes.append(
            "the work of the GPU itself was not timed: computing is the time in the framework's "
            "calls, in which it launches work or waits for it"
        )
    else:
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
            "calls of tf.function and jitted functions, and runs of sessions"
        )
    if options.first is not None:
        return f"the program made {made} steps, and fewer than 5 of them in the given range"
    return f"the program made only {made} steps: at least 7 are needed"
