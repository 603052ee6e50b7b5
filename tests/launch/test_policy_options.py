"""The words of a policy, and what is said to words that are none."""

from __future__ import annotations

import pytest

from tests.cases import each
from whygpu.errors import UsageError
from whygpu.launch.policy_options import (
    parse_device,
    parse_log_level,
    parse_memory,
    parse_off,
    parse_policy,
    parse_require,
)
from whygpu.model.policy import DeviceChoice, DevicePolicy, MemoryLimit


@each(
    ("text", "choice"),
    [
        ("cpu", DeviceChoice("cpu")),
        ("CPU", DeviceChoice("cpu")),
        ("gpu", DeviceChoice("gpu")),
        ("cuda", DeviceChoice("gpu")),
        ("auto", DeviceChoice("auto")),
        ("gpu:1", DeviceChoice("gpu", ("1",))),
        ("cuda:0", DeviceChoice("gpu", ("0",))),
        ("gpu:0,2", DeviceChoice("gpu", ("0", "2"))),
        ("gpu:0, 2", DeviceChoice("gpu", ("0", "2"))),
        ("GPU-1a2b", DeviceChoice("gpu", ("GPU-1a2b",))),
        ("gpu:GPU-1a2b,GPU-3c4d", DeviceChoice("gpu", ("GPU-1a2b", "GPU-3c4d"))),
        ("RTX 4090", DeviceChoice("gpu", ("RTX 4090",))),
    ],
)
def test_devices(text: str, choice: DeviceChoice) -> None:
    assert parse_device(text) == choice


@each("text", ["", "gpu:", "gpu:0,", "gpu:,1", "1", "0,2", "cpu:0", " ", "cpu,gpu", "gpu:0,auto"])
def test_what_is_no_device(text: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        parse_device(text)


def test_a_model_number_is_a_part_of_a_name() -> None:
    with pytest.raises(UsageError, match=r"did you mean a GPU by a part of its name.*'RTX 3090'"):
        parse_device("3090")


@each(
    ("text", "limit"),
    [
        ("growth", MemoryLimit("growth")),
        ("4GiB", MemoryLimit("bytes", 4 * 1024**3)),
        ("4G", MemoryLimit("bytes", 4 * 1024**3)),
        ("4gb", MemoryLimit("bytes", 4 * 1000**3)),
        ("512 MiB", MemoryLimit("bytes", 512 * 1024**2)),
        ("1.5GiB", MemoryLimit("bytes", 1.5 * 1024**3)),
        ("80%", MemoryLimit("fraction", 0.8)),
        ("100 %", MemoryLimit("fraction", 1.0)),
    ],
)
def test_memory(text: str, limit: MemoryLimit) -> None:
    assert parse_memory(text) == limit


@each("text", ["4", "0%", "120%", "-1GiB", "much", "1MB", "", "GiB", "4XiB"])
def test_what_is_no_memory(text: str) -> None:
    with pytest.raises(UsageError, match="expected"):
        parse_memory(text)


def test_words_with_one_meaning() -> None:
    assert parse_off("cudnn", "off")
    assert parse_require("gpu")
    assert parse_log_level("Error") == "error"
    for parse, text in ((parse_require, "cpu"), (parse_log_level, "loud")):
        with pytest.raises(UsageError, match="expected"):
            parse(text)
    with pytest.raises(UsageError, match="tf32='on': expected off"):
        parse_off("tf32", "on")


def test_a_policy_in_one_line() -> None:
    assert parse_policy("") == DevicePolicy()
    assert parse_policy(
        "gpu:1 memory=4GiB cudnn=off tf32=off xla=off deterministic require=gpu log-level=error"
    ) == DevicePolicy(
        device=DeviceChoice("gpu", ("1",)),
        require_gpu=True,
        memory=MemoryLimit("bytes", 4 * 1024**3),
        cudnn_off=True,
        deterministic=True,
        tf32_off=True,
        xla_off=True,
        log_level="error",
    )
    assert parse_policy("device=cpu") == DevicePolicy(device=DeviceChoice("cpu"))
    with pytest.raises(UsageError, match="no part of a policy"):
        parse_policy("speed=high")
