"""The GPU works, but the job is too small, or its input too slow, to run faster on it.

## Why it happens

The first use of a GPU takes seconds: context, libraries, kernels, tuning. Each operation needs some
microseconds to start, and its data must be copied to the GPU. A single small image, a small batch,
a tiny network, or an input pipeline that decodes on one core cannot keep a GPU busy. The CPU is
then as fast or faster.

## What it looks like

No error is reported: the device is created, the libraries are opened, and the measured time is no
better than the CPU's. nvidia-smi shows a few per cent of use.

## Fix

Do not measure the first call. Use larger batches. Read and decode in parallel and ahead of time
(tf.data with prefetch, DataLoader with num_workers and pin_memory).

## Fires on (log)

```
2022-01-05 10:00:01.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1525] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9649 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 2080 Ti, pci bus id: 0000:0a:00.0, compute capability: 7.5
CPU time: 0.412 s
GPU time: 1.873 s
```

```
Epoch 1/10: 120/1000 [01:20<09:40, 1.52it/s, loss=0.41]
GPU utilization: 3%
Epoch 1/10: 320/1000 [03:20<07:40, 1.52it/s, loss=0.40]
GPU utilization: 5%
Epoch 1/10: 520/1000 [05:20<05:40, 1.52it/s, loss=0.39]
GPU utilization: 2%
```

Keras compares the time of its callbacks with that of the batch.

```
WARNING:tensorflow:Callback method `on_train_batch_end` is slow compared to the batch time (batch time: 0.0072s vs `on_train_batch_end` time: 0.0135s). Check your callbacks.
```

## Quiet on (log)

Callbacks are slow while the model is tested.

```
WARNING:tensorflow:Callback method `on_test_batch_end` is slow compared to the batch time (batch time: 0.0072s vs `on_test_batch_end` time: 0.0135s). Check your callbacks.
```

```
2022-01-05 10:00:01.000000: I tensorflow/core/common_runtime/gpu/gpu_device.cc:1525] Created device /job:localhost/replica:0/task:0/device:GPU:0 with 9649 MB memory:  -> device: 0, name: NVIDIA GeForce RTX 2080 Ti, pci bus id: 0000:0a:00.0, compute capability: 7.5
CPU time: 11.412 s
GPU time: 0.873 s
```

The samples are from before the first step, or the GPU is busy.

```
GPU utilization: 0%
GPU utilization: 0%
GPU utilization: 0%
Epoch 1/10: 120/1000 [01:20<09:40, 1.52it/s, loss=0.41]
GPU utilization: 93%
```

## Sources

- <https://www.tensorflow.org/guide/data_performance>
- <https://www.tensorflow.org/guide/gpu_performance_analysis>
- <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.log_subjects import subject_of
from whygpu.causes.evidence.log_utilisation import ENOUGH, Utilisation, low_utilisation, samples
from whygpu.causes.evidence.own_words import complaints
from whygpu.model.cause import cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log, Match
from whygpu.model.remedy import command_line
from whygpu.tables.advice import PROFILE
from whygpu.tables.topics_told import IDLE

CAUSE = cause("WG706", __name__, __doc__, severity="warning", effect="none")

_TIMED = late(
    r"(?:^|[ \t|,;(])(?P<device>GPU|CPU|gpu|cpu|cuda"
    r"|CUDA)\b[^\n\d]{0,40}?(?P<number>\d{1,6}\.?\d{0,9}) ?"
    r"(?P<unit>s|sec|secs|seconds|ms|milliseconds|us|minutes|min)\b",
    re.M,
)
_LABELLED = late(
    r"^ {0,8}(?P<label>[A-Za-z_ ]{0,30}(?:time|Time|took|elapsed"
    r"|seconds)[A-Za-z_ ]{0,20})[:=] {0,4}"
    r"(?P<number>\d{1,6}\.\d{1,18}) ?(?:s|sec|seconds)?$",
    re.M,
)
_WARNED = late(
    r"does not have many workers which may be a bottleneck|[Dd]ata loading is (?:slow|a bottleneck)"
)
"""The program itself suspects that it loads its data too slowly."""
_START = late(
    r"instructions that this TensorFlow binary|wasn't compiled to use|optimized with oneAPI"
)
_SCALES = {"ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6, "min": 60.0, "minutes": 60.0}


_MOST_LINES = 6


class _Comparison(NamedTuple):
    gpu: float
    cpu: float
    lines: tuple[int, int]


_REMEDIES = (
    Remedy("Give the GPU more work at once: a larger batch, several inputs per call."),
    Remedy(
        "Read and decode input in parallel and ahead of time: tf.data's map with "
        "num_parallel_calls and prefetch, or DataLoader's num_workers and pin_memory."
    ),
    Remedy("Check how busy the GPU is.", command_line("nvidia-smi dmon -s u")),
)


@CAUSE.on_log
def detect_in_log(log: Log) -> Iterator[Finding]:
    if log.failures:
        return
    idle = low_utilisation(log)
    waits = _waits(log)
    if waits is not None:
        yield _waits_for_data(log, waits)
    elif (slow := log.first(_SLOW_CALLBACK)) is not None:
        yield _waits_for_callback(log, slow)
    elif idle is not None and (len(idle.lines) >= ENOUGH or log.says(_WARNED)):
        yield _idle(log, idle)
    elif any(device.event == "ready" for device in log.devices):
        yield from _slower_than_cpu(log)
    elif not log.reports and not samples(log):
        yield from _said_to_be_idle(log)


_SHARE = late(
    r"\b(?P<of>GPU|CPU|V?RAM|mem(?:ory)?\b|util|engagement|idle)"
    r"|(?<![\d.])(?P<share>\d{1,3})(?:\.\d{1,2})?(?: ?[-~–] ?(?P<to>\d{1,3})(?:\.\d{1,2})?)? ?%",
    re.IGNORECASE,
)
_BUSY = 50
_OF_A_DESKTOP = 10
"""Per cent: what draws the screen may keep a GPU so busy, while the program is on the CPU."""
_NOW_AND_THEN = late(r"\b(?:drops?\b|fluctuat|spik|jump|up and down)|波动", re.IGNORECASE)


def _said_to_be_idle(log: Log) -> Iterator[Finding]:
    """A person says that the GPU is used, but seldom busy."""
    lines = [line for line in complaints(log, IDLE) if _is_used(log.line(line).text)]
    if lines:
        shares = _shares(log.line(lines[0]).text)
        yield CAUSE.finding(
            subject=subject_of(log),
            message="the GPU waits for input or for the program, or gets too little work at once: "
            "it is said to be busy for a small part of the time",
            evidence=log.evidence(lines[0]),
            remedies=(PROFILE, *_REMEDIES),
            confidence="likely" if max(shares, default=0) > _OF_A_DESKTOP else "possible",
            ask=IDLE.ask,
        )


def _is_used(text: str) -> bool:
    """Whether the GPU is busy now and then. If it is always idle, the program may not use it."""
    shares = _shares(text) or [0]
    now_and_then = max(shares) > 0 or not any(map(str.isdecimal, text))
    if _NOW_AND_THEN.search(text):
        return now_and_then and min(shares) < _BUSY
    return max(shares) > _OF_A_DESKTOP and min(shares) < _BUSY


def _shares(text: str) -> list[int]:
    """The shares of its time, in per cent, for which a sentence says that the GPU is busy."""
    of, shares = "gpu", []
    for found in _SHARE.finditer(text):
        if found["of"]:
            new = found["of"].lower()
            # "GPU memory is full, but utilization is 3%" is about the GPU again.
            of = new if new in ("gpu", "cpu") or of != "cpu" else of
        elif of in ("gpu", "util", "engagement"):
            shares += [int(found["share"]), int(found["to"] or found["share"])]
    return shares


_PROFILED = late(r"enumerate\(DataLoader\)\S{0,60} {1,40}(?P<share>\d{1,3}\.\d{1,2})%")
"""A row of the table of PyTorch's profiler: what the main process waits for."""
_MEASURED = late(
    # Time 0.1 (2.0)  Data 0.1 (1.8): the last value and the average
    r"\bTime[ :]{1,3}[\d.]{1,12} \( {0,4}(?P<time>[\d.]{1,12})\)[ \t]{1,8}"
    r"Data[ :]{1,3}[\d.]{1,12} \( {0,4}(?P<data>[\d.]{1,12})\)"
    # time: 2.1, data_time: 1.9
    r"|\btime: (?P<step>\d{1,6}\.\d{1,9}),? {1,4}data_time: (?P<load>\d{1,6}\.\d{1,9})"
)
_MOST = 0.5
"""If loading takes more than this share of the time, a GPU cannot be busy for the rest of it."""


class _Waiting(NamedTuple):
    share: float
    lines: tuple[int, ...]


def _waits(log: Log) -> _Waiting | None:
    """How much of its time the program waits for data, as it measured itself."""
    profiled = [(float(m.groups["share"] or 0) / 100, m.line) for m in log.find(_PROFILED)]
    measured = [(_share(match), match.line) for match in log.find(_MEASURED)]
    samples = profiled or (measured if len(measured) >= ENOUGH else [])
    if not samples:
        return None
    share = sorted(share for share, _ in samples)[len(samples) // 2]
    return _Waiting(share, tuple(line for _, line in samples)) if share >= _MOST else None


def _share(match: Match) -> float:
    groups = match.groups
    whole = float(groups["time"] or groups["step"] or 0)
    return float(groups["data"] or groups["load"] or 0) / whole if whole else 0.0


def _waits_for_data(log: Log, waits: _Waiting) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"the program waits for its data for {waits.share:.0%} of the time, and the GPU "
        "has nothing to do meanwhile",
        evidence=log.evidence(*waits.lines[:_MOST_LINES]),
        remedies=_REMEDIES,
        confidence="likely",
        ask="Does the time of a step shrink with more workers (num_workers)?",
    )


_SLOW_CALLBACK = late(
    # `Method (on_train_batch_end) is slow ...` until TensorFlow 2.2
    r"\b[Mm]ethods? [`(]?(?P<of>on_(?:train_)?batch_(?:begin|end))(?:\(\))?[`)]? is slow compared to"
)


def _waits_for_callback(log: Log, slow: Match) -> Finding:
    return CAUSE.finding(
        subject="keras",
        message=f"the GPU may wait for a callback: Keras says that {slow.groups['of']} is slow "
        "compared to the batch",
        evidence=log.evidence(slow.line),
        remedies=(
            PROFILE,
            Remedy(
                "Let callbacks do their work once per epoch or every hundred batches. In "
                "TensorBoard, profile_batch and update_freq='batch' do work in every batch."
            ),
        ),
        confidence="possible",
        ask="Is a step shorter without callbacks? If not, the callback is only the first that waits "
        "for the result of the GPU.",
    )


def _idle(log: Log, idle: Utilisation) -> Finding:
    return CAUSE.finding(
        subject=subject_of(log),
        message=f"the GPU was busy for at most {idle.most} % of the time in {len(idle.lines)} "
        "samples while the program worked: it waits for input or for the program, or gets too "
        "little work at once",
        evidence=log.evidence(*idle.lines[:_MOST_LINES]),
        remedies=_REMEDIES,
        confidence="likely",
        ask="Is the GPU busier with a batch ten times as large?",
    )


def _slower_than_cpu(log: Log) -> Iterator[Finding]:
    found = _named(log) or _by_run(log)
    if found is None or found.gpu < found.cpu:
        return
    ready = next(device for device in log.devices if device.event == "ready")
    yield CAUSE.finding(
        subject=subject_of(log),
        message=f"the GPU ({ready.name}) works, but the job takes {found.gpu:.3g} s on it and "
        f"{found.cpu:.3g} s on the CPU: it is too small, or its input too slow, for a GPU",
        evidence=log.evidence(ready.line, *found.lines),
        remedies=(
            Remedy("Do not measure the first call: it sets up the GPU."),
            *_REMEDIES,
        ),
        confidence="likely",
        ask="Is the GPU still slower with a batch ten times as large, without the first call?",
    )


def _named(log: Log) -> _Comparison | None:
    """Times that are labelled with their device."""
    times: dict[str, tuple[float, int]] = {}
    for match in log.find(_TIMED):
        device = "cpu" if (match.groups["device"] or "").lower() == "cpu" else "gpu"
        scale = _SCALES.get(match.groups["unit"] or "s", 1.0)
        times[device] = (float(match.groups["number"] or 0) * scale, match.line)
    if len(times) < 2:
        return None
    (gpu, gpu_line), (cpu, cpu_line) = times["gpu"], times["cpu"]
    return _Comparison(gpu, cpu, (gpu_line, cpu_line))


def _by_run(log: Log) -> _Comparison | None:
    """Several runs of one program in one log, with the same step timed with and without a GPU."""
    starts = [match.line for match in log.find(_START)]
    ready = [device.line for device in log.devices if device.event == "ready"]
    times: dict[str, dict[bool, tuple[float, int]]] = {}
    for match in log.find(_LABELLED):
        start = max((line for line in starts if line < match.line), default=0)
        on_gpu = any(start <= line < match.line for line in ready)
        label = (match.groups["label"] or "").strip()
        times.setdefault(label, {})[on_gpu] = (float(match.groups["number"] or 0), match.line)
    compared = [
        _Comparison(both[True][0], both[False][0], (both[True][1], both[False][1]))
        for both in times.values()
        if len(both) == 2
    ]
    return max(compared, key=lambda each: each.gpu - each.cpu, default=None)
