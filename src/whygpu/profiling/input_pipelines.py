"""Which input pipeline the program waited for, and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whygpu.model.profile import ProcessProfile
from whygpu.profiling.attribution import Sample, Spent, spent_by
from whygpu.profiling.crowding import CROWDED
from whygpu.profiling.device_time import part
from whygpu.profiling.stack_kinds import KERAS_ARRAYS

_OWN_SOURCES = ("a generator", "a function")
"""Data that the program itself prepares, and no pipeline of a framework."""


def with_framework_profile(samples: list[Sample], profile: ProcessProfile) -> list[Sample]:
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
        kind = sample.kind._replace(category="input", source=tf_data_source(profile))
        divided += [part(sample, 1 - waiting), part(sample._replace(kind=kind), waiting)]
    return divided


def tf_data_source(profile: ProcessProfile) -> str:
    """Keras passes arrays, and the batches of a PyDataset or a generator, through tf.data too."""
    if not profile.data_adapters and _samples_show_arrays(profile):
        return "keras arrays"
    stages = profile.framework.stages if profile.framework is not None else ()
    from_python = bool(stages) and "Generator" in stages[0].name
    return "keras data" if from_python else "tf.data"


def with_known_data(samples: list[Sample], profile: ProcessProfile) -> list[Sample]:
    """Keras passes arrays through tf.data or a DataLoader, depending on its backend."""
    if set(profile.data_adapters) != {"ArrayDataAdapter"}:
        return samples
    return [
        sample._replace(kind=sample.kind._replace(source="keras arrays"))
        if sample.kind.category == "input" and sample.kind.source not in _OWN_SOURCES
        else sample
        for sample in samples
    ]


def _samples_show_arrays(profile: ProcessProfile) -> bool:
    """For Keras 2, whose adapters are not recorded; the samples may miss it."""
    return any(place.file.startswith(KERAS_ARRAYS) for place in profile.places)


def with_restarts(samples: list[Sample]) -> list[Sample]:
    """Worker processes that start again have no batch yet: waiting for the first is due to that."""
    found = []
    restarted = False
    for sample in samples:
        if sample.kind.category != "input":
            restarted = False
        elif sample.kind.source == _RESTART:
            restarted = True
        elif restarted and sample.kind.source == "workers":
            sample = sample._replace(kind=sample.kind._replace(source=_RESTART))
        found.append(sample)
    return found


_RESTART = "starting workers"


def input_sources(samples: Sequence[Sample]) -> dict[str, float]:
    found: dict[str, float] = {}
    for sample in samples:
        if sample.kind.category == "input":
            found[sample.kind.source] = found.get(sample.kind.source, 0.0) + sample.seconds
    return found


def input_detail(
    sources: Mapping[str, float],
    workers: Sequence[float],
    waited: float,
    profile: ProcessProfile,
) -> str:
    if not sources:
        return ""
    source = max(sources, key=lambda name: sources[name])
    if source == "workers" and workers:
        busy = 100 * sum(workers) / len(workers)
        count = f"{len(workers)} worker processes" if len(workers) > 1 else "one worker process"
        use = f"{count} of the DataLoader, busy {busy:.0f} % of the time"
        return use if waited < CROWDED else f"{use}, waiting for a core {100 * waited:.0f} %"
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
    "keras arrays": "Keras takes batches out of arrays in memory",
    "another thread": "another thread or process prepares it",
    "a generator": "a generator of the program",
    "a function": "a function of the program that loads data, by its name",
}


def is_parallel(profile: ProcessProfile) -> bool:
    seen = profile.framework
    return seen is not None and bool(seen.stages) and "Parallel" in seen.stages[0].name


def input_work(samples: Sequence[Sample], divided: Sequence[Sample]) -> Spent:
    """What the thread spent on input: all of it, or what waited for it inside a function."""
    nothing = Spent(0.0, 0.0, 0.0)
    return max(
        spent_by(samples).get("input", nothing),
        spent_by(divided).get("input", nothing),
        key=lambda spent: spent.seconds,
    )
