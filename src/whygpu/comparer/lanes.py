"""Lanes as words: cpu, gpu:no-cudnn+no-tf32, keras:jax, keras:torch@gpu:deterministic.

    lane     keras:BACKEND | [keras:BACKEND@]DEVICE[:OPTION[+OPTION ...]]
    DEVICE   cpu | gpu
    OPTION   no-cudnn | no-tf32 | deterministic | xla
    BACKEND  tensorflow | jax | torch

keras:BACKEND alone is on the CPU: every machine has one, so that the word means the same anywhere.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from typing import TypeVar, get_args

from whygpu.errors import UsageError
from whygpu.model.comparison import KERAS_BACKENDS, Lane, LaneDevice, LaneOption
from whygpu.model.policy import DeviceChoice, DevicePolicy

DEVICES: tuple[LaneDevice, ...] = get_args(LaneDevice)
OPTIONS: tuple[LaneOption, ...] = get_args(LaneOption)

Word = TypeVar("Word", bound=str)

_NAMES = {"pytorch": "torch", "tf": "tensorflow", "cuda": "gpu"}
_ON_GPU_ONLY: tuple[LaneOption, ...] = ("no-cudnn", "no-tf32")


def parse_lanes(text: str) -> tuple[Lane, ...]:
    """Lanes with commas between them, in the user's order."""
    lanes = [parse_lane(word) for word in text.split(",")]
    seen: dict[Lane, str] = {}
    for lane in lanes:
        key = lane._replace(name="", options=tuple(sorted(lane.options)))
        if key in seen:
            before = seen[key]
            same = "given twice" if before == lane.name else f"the same lane as {before}"
            raise _wrong(lane.name, f"it is {same}; each lane already runs twice")
        seen[key] = lane.name
    return tuple(lanes)


def parse_lane(text: str) -> Lane:
    word = text.strip().lower()
    if not word:
        raise _wrong(word, "there is an empty lane between commas; expected cpu,gpu")
    several = word.replace(";", " ").split()
    if len(several) > 1:
        raise _wrong(word, f"expected commas between lanes: {','.join(several)}")
    rest, backend = word, None
    if word.startswith("keras:"):
        name, _, rest = word.removeprefix("keras:").partition("@")
        backend = _one_of(name, KERAS_BACKENDS, "backend", word)
    device_word, _, option_words = (rest or "cpu").partition(":")
    device = _one_of(device_word, DEVICES, "device" if backend else "lane", word)
    options = tuple(
        _one_of(option, OPTIONS, "option", word) for option in option_words.split("+") if option
    )
    if len(set(options)) < len(options):
        raise _wrong(word, "an option is given twice")
    for option in options:
        if device == "cpu" and option in _ON_GPU_ONLY:
            raise _wrong(word, f"{option} is an option for GPUs; expected gpu:{option}")
    return Lane(word, device, options, backend)


def _one_of(word: str, known: Sequence[Word], what: str, lane: str) -> Word:
    """The known word, also for other names of it."""
    word = _NAMES.get(word, word)
    for each in known:
        if each == word:
            return each
    near = difflib.get_close_matches(word, known, 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    if what == "lane" and word in KERAS_BACKENDS:
        hint = f"; did you mean keras:{word}?"
    elif what == "option" and word.isdecimal():
        hint = f"; CUDA_VISIBLE_DEVICES={word} chooses a GPU"
    kinds = f"{', '.join(known)}" + (", keras:jax and the like" if what == "lane" else "")
    raise _wrong(lane, f"no {what} {word!r}; there are {kinds}{hint}")


def _wrong(lane: str, problem: str) -> UsageError:
    return UsageError(problem, option="lanes", value=lane)


def default_lanes(*, gpu: bool, keras: bool, installed: Collection[str]) -> tuple[Lane, ...]:
    """The lanes that show most on a machine.

    `gpu`: it has one, working or not. `keras`: the work is a Keras model, or imports Keras.
    `installed`: names of frameworks.
    """
    if gpu:
        return parse_lanes("cpu,gpu,gpu:no-cudnn")
    backends = [name for name in KERAS_BACKENDS if name in installed]
    if keras and len(backends) > 1:
        return parse_lanes(",".join(f"keras:{name}" for name in backends))
    # The second lane cannot run; the reason is what the user wants to know.
    return parse_lanes("cpu,gpu")


def policy_of(lane: Lane) -> DevicePolicy:
    """The policy of `whygpu run` for the lane; the lane itself switches XLA on."""
    return DevicePolicy(
        device=DeviceChoice(lane.device),
        require_gpu=lane.device == "gpu",
        cudnn_off="no-cudnn" in lane.options,
        deterministic="deterministic" in lane.options,
        tf32_off="no-tf32" in lane.options,
    )
