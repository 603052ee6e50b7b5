"""The state of the hardware as NVML reports it on a real GPU."""

from __future__ import annotations

import pytest

from tests.hardware.test_run import _gpus
from whygpu import snapshot
from whygpu.model.observed import Known, Unknown

pytestmark = pytest.mark.skipif(not _gpus(), reason="the NVIDIA driver shows no GPU here")


def test_every_fact_is_reported_or_known_to_be_absent() -> None:
    gpus = snapshot(probe=False).driver.gpus
    assert isinstance(gpus, Known)
    for gpu in gpus.value:
        assert isinstance(gpu.health, Known), gpu.health
        health = gpu.health.value
        unknown = [name for name in health._fields if isinstance(getattr(health, name), Unknown)]
        assert unknown == []
        assert isinstance(health.pcie, Known)
        assert 1 <= health.pcie.value.width <= health.pcie.value.max_width <= 32
