"""Answers of the NVML worker, as it prints them: a healthy GPU, and what differs from it."""

from __future__ import annotations

import json
from typing import Any

from tests.collectors.transcripts import PLATFORM, printed
from whygpu.collectors import nvml
from whygpu.host.base import Completed
from whygpu.host.own_process import own_command

GIB = 1 << 30
ASK = f"run {' '.join(own_command(str(PLATFORM['python']), nvml.WORKER))}"

NOT_SUPPORTED = {"error": 3, "text": "Not Supported"}
LOST = {"error": 15, "text": "GPU is lost"}


def value(anything: Any) -> dict[str, Any]:
    return {"value": anything}


def gpu(index: int = 0, name: str = "NVIDIA A100-SXM4-40GB", **changes: Any) -> dict[str, Any]:
    """What the worker says of a GPU; `changes` are whole facts."""
    return {
        "uuid": value(f"GPU-{index:08x}-d72c-4106-c12f-20bd9faed9f6"),
        "name": value(name),
        "address": value(f"00000000:{0x41 + index:02X}:00.0"),
        "capability": value([8, 0]),
        "memory_total": value(40 * GIB),
        "memory_used": value(GIB),
        "memory_reserved": value(GIB // 2),
        "compute_mode": value(0),
        "mig": value(0),
        "mig_uuids": value([]),
        "ecc_uncorrected": value(0),
        "processes": value([]),
        "health": health(),
        **changes,
    }


def health(**changes: Any) -> dict[str, Any]:
    """What the worker says of the hardware; `changes` are whole facts."""
    return {
        "vbios": value("92.00.45.00.03"),
        "ecc": value(1),
        "persistence": value(1),
        "power_limit": value(400_000),
        "power_default": value(400_000),
        "max_clock": value(1410),
        "max_memory_clock": value(1215),
        "slowdowns": value(1),
        "pcie": value([16, 16, 1, 4]),
        "rows": value([0, 0, 0, 0]),
        "pages_pending": NOT_SUPPORTED,
        "nvlinks": value([True] * 12),
        "mig_layout": value([]),
        "fabric": value([0, 0]),
        **changes,
    }


def survey(*gpus: dict[str, Any], **changes: Any) -> Completed:
    facts = {
        "driver": value("580.65.06"),
        "cuda": value(13000),
        "count": value(len(gpus)),
        "gpus": list(gpus),
        "pairs": value([]),
        **changes,
    }
    return printed("\n" + json.dumps(facts) + "\n")


def refusal(code: int, text: str) -> Completed:
    """NVML did not even start."""
    return printed("\n" + json.dumps({"error": code, "text": text}) + "\n")
