"""What GPUs did under load, in words that the text and the page share."""

from __future__ import annotations

from typing import NamedTuple

from whygpu.model.derived import display_name
from whygpu.model.observed import Known, Observed, Unknown
from whygpu.model.snapshot import Snapshot
from whygpu.model.stress import (
    NOT_STRESSED,
    LoadState,
    LoadTest,
    Rate,
    RateName,
    Speeds,
    speed_text,
)

RATE_WORDS: dict[RateName, str] = {
    "memory": "copies in its memory",
    "to-gpu": "copies to the GPU",
    "from-gpu": "copies from the GPU",
    "float32": "float32 products",
    "tf32": "TF32 products",
    "bfloat16": "bfloat16 products",
    "float16": "float16 products",
}


class LoadRow(NamedTuple):
    what: str
    speed: str
    share: str
    """Of what the data sheet promises; empty if that is not known."""
    result: str
    """right, WRONG, not checked."""


class LoadWords(NamedTuple):
    """One GPU under load."""

    gpu: str
    about: str
    rows: tuple[LoadRow, ...]
    not_measured: tuple[str, ...] = ()
    """What has no speed, and why; each reason once."""


def load_words(machine: Snapshot) -> tuple[LoadWords, ...]:
    """Every GPU that was to be put under load; nothing without --stress."""
    if machine.stress == NOT_STRESSED:
        return ()
    if not isinstance(machine.stress, Known):
        return (_words("", "", machine.stress),)
    gpus = machine.driver.gpus
    names = {gpu.number: gpu.name for gpu in (gpus.value if isinstance(gpus, Known) else ())}
    return tuple(
        _words(f"GPU {tested.number}", names.get(tested.number, ""), tested.test)
        for tested in machine.stress.value
    )


def _words(gpu: str, name: str, test: Observed[LoadTest]) -> LoadWords:
    if not isinstance(test, Known):
        reason = test.reason if isinstance(test, Unknown) else f"no {test.source}"
        return LoadWords(gpu, f"not tested: {reason}", ())
    found = test.value
    framework = f"{display_name(found.framework)} {found.version}"
    about = [name, f"{framework} for {found.seconds:.1f} s", *_state(found.state)]
    if isinstance(found.others, Known) and found.others.value > 0:
        about.append(f"used by other processes meanwhile ({found.others.value})")
    results = {check.name: check.right for check in found.results}
    rows = tuple(
        _row(rate, rate.speeds.value, results.get(rate.name))
        for rate in found.rates
        if isinstance(rate.speeds, Known)
    )
    return LoadWords(gpu, ", ".join(part for part in about if part), rows, _not_measured(found))


def _not_measured(test: LoadTest) -> tuple[str, ...]:
    missing: dict[str, list[str]] = {}
    for rate in test.rates:
        if isinstance(rate.speeds, Unknown):
            missing.setdefault(rate.speeds.reason, []).append(RATE_WORDS[rate.name])
    return tuple(f"not measured: {', '.join(names)}: {why}" for why, names in missing.items())


def _state(state: LoadState) -> list[str]:
    parts = []
    if isinstance(state.clock_mhz, Known):
        parts.append(f"{state.clock_mhz.value} MHz")
    if isinstance(state.watts, Known):
        parts.append(f"up to {state.watts.value} W")
    if isinstance(state.celsius, Known):
        parts.append(f"up to {state.celsius.value} degrees Celsius")
    if isinstance(state.pcie_generation, Known) and isinstance(state.pcie_width, Known):
        lanes = f"{state.pcie_width.value} lanes"
        parts.append(f"PCIe {state.pcie_generation.value} with {lanes}")
    if isinstance(state.slowdowns, Known) and state.slowdowns.value:
        parts.append(f"slowed by {' and '.join(state.slowdowns.value)}")
    return parts


def _row(rate: Rate, speeds: Speeds, right: Observed[bool] | None) -> LoadRow:
    share = ""
    if rate.share is not None and isinstance(rate.peak, Known):
        share = f"{rate.share:.0%} of {speed_text(rate.name, rate.peak.value)}"
    result = "not checked"
    if isinstance(right, Known):
        result = "right" if right.value else "WRONG"
    speed = speed_text(rate.name, speeds.median)
    return LoadRow(RATE_WORDS[rate.name], speed, share, result)
