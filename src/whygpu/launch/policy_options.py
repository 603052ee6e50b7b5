"""Parses the options of a device policy, from the command line or whygpu.apply()."""

from __future__ import annotations

import re
from typing import get_args

from whygpu.errors import UsageError
from whygpu.model.policy import DeviceChoice, DevicePolicy, LogLevel, MemoryLimit
from whygpu.model.units import given_size, size_text

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%")
SMALLEST_LIMIT = 64 << 20
"""The limit does not include what CUDA itself needs; below this no framework works."""


_KINDS = ("cpu", "gpu", "cuda", "auto")
"""Each is a choice by itself, and none is the name of a GPU."""


def _wrong(option: str, value: str, problem: str) -> UsageError:
    return UsageError(problem, option=option, value=value)


def parse_device(text: str) -> DeviceChoice:
    """cpu, gpu, auto, gpu:1, gpu:0,2, GPU-1a2b (the beginning of a UUID), or a GPU's name."""
    word = text.strip()
    if word.lower() in ("cpu", "auto"):
        return DeviceChoice("cpu" if word.lower() == "cpu" else "auto")
    if word.lower() in ("gpu", "cuda"):
        return DeviceChoice("gpu")
    kind, colon, rest = word.partition(":")
    if colon and kind.lower() in ("gpu", "cuda"):
        return DeviceChoice("gpu", _several(text, rest))
    if kind.lower() == "cpu":
        raise _wrong("device", text, "the CPU is one device; expected cpu, without a number")
    if re.fullmatch(r"\d{3,}", word):
        raise _wrong(
            "device",
            text,
            f"did you mean a GPU by a part of its name, such as 'RTX {word}'? A number counts GPUs "
            "in PCI bus order: gpu:0 is the first",
        )
    if re.fullmatch(r"[\d,\s]+", word):
        raise _wrong("device", text, f"expected gpu:{word} for GPU {word} in PCI bus order")
    return DeviceChoice("gpu", _several(text, word))


def _several(text: str, rest: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in rest.split(","))
    if not all(words) or any(word.lower() in _KINDS for word in words):
        raise _wrong("device", text, _DEVICES)
    return words


_DEVICES = (
    "expected one of cpu, gpu, auto, gpu:1, gpu:0,2, the beginning of a UUID (GPU-1a2b, MIG-3c4d) "
    "or a part of a GPU's name (RTX 4090)"
)


def names_no_gpu(word: str) -> UsageError:
    """For one word of the option, which may be a part of gpu:0,x."""
    return UsageError(f"{word!r} names no GPU; {_DEVICES}", option="device")


def parse_memory(text: str) -> MemoryLimit:
    """growth, an amount (4GiB, 500MB, 4G) or a part of each GPU's memory (80%)."""
    word = text.strip()
    if word.lower() == "growth":
        return MemoryLimit("growth")
    percent = _PERCENT.fullmatch(word)
    if percent is not None:
        fraction = float(percent[1]) / 100
        if not 0 < fraction <= 1:
            raise _wrong("memory", text, "expected more than 0% and at most 100%")
        return MemoryLimit("fraction", fraction)
    amount = parse_bytes(text, "memory", expected="growth, an amount such as 4GiB, or 80%")
    return MemoryLimit("bytes", amount)


def parse_bytes(text: str, option: str, *, expected: str) -> float:
    """4GiB, 500MB or 4G. `expected` says what the option takes."""
    word = text.strip()
    if _NUMBER.fullmatch(word) and float(word) > 0:
        raise _wrong(option, text, f"expected a unit, such as {word}GiB")
    amount = given_size(word)
    if amount is None:
        raise _wrong(option, text, f"expected {expected}")
    if amount < SMALLEST_LIMIT:
        raise _wrong(option, text, f"expected at least {size_text(SMALLEST_LIMIT)}")
    return amount


def parse_log_level(text: str) -> LogLevel:
    for level in get_args(LogLevel):
        if text.lower() == level:
            return level  # type: ignore[no-any-return]
    raise _wrong("log_level", text, f"expected one of {', '.join(get_args(LogLevel))}")


def parse_off(option: str, text: str) -> bool:
    """Options whose only value is off: on is what the program does anyway."""
    if text.lower() != "off":
        raise _wrong(option, text, "expected off; without the option nothing is changed")
    return True


def parse_require(text: str) -> bool:
    if text.lower() != "gpu":
        raise _wrong("require", text, "expected gpu, the one thing that can be required")
    return True


def parse_policy(words: str) -> DevicePolicy:
    """A policy in one line: "gpu:1 memory=4GiB cudnn=off deterministic require=gpu"."""
    policy = DevicePolicy()
    for word in words.split():
        name, equals, value = word.partition("=")
        policy = _with_word(policy, name.lower().lstrip("-"), value if equals else None, word)
    return policy


def _with_word(policy: DevicePolicy, name: str, value: str | None, word: str) -> DevicePolicy:
    if value is None:
        if name == "deterministic":
            return policy._replace(deterministic=True)
        if name == "tf1":
            return policy._replace(tf1=True)
        return policy._replace(device=parse_device(word))
    if name == "device":
        return policy._replace(device=parse_device(value))
    if name == "memory":
        return policy._replace(memory=parse_memory(value))
    if name == "cudnn":
        return policy._replace(cudnn_off=parse_off(name, value))
    if name == "tf32":
        return policy._replace(tf32_off=parse_off(name, value))
    if name == "xla":
        return policy._replace(xla_off=parse_off(name, value))
    if name == "log-level":
        return policy._replace(log_level=parse_log_level(value))
    if name == "require":
        return policy._replace(require_gpu=parse_require(value))
    raise UsageError(
        f"{word!r} is no part of a policy; expected a device (cpu, gpu, gpu:1, auto) and words "
        "such as memory=4GiB, cudnn=off, tf32=off, xla=off, log-level=error, require=gpu, "
        "deterministic"
    )
