"""The tool that shows on a new machine what NVML answers in a way that whygpu does not expect."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.lab.driver import NoCompiler, StubDriver, StubGpu
from tools import gpu_facts

Install = Callable[[StubDriver], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    def install(driver: StubDriver) -> None:
        try:
            environ = driver.install(tmp_path / "driver", cache=tmp_path)
        except NoCompiler as reason:
            pytest.skip(str(reason))
        for name, value in environ.items():
            monkeypatch.setenv(name, value)

    return install


def test_what_nvml_refuses_and_what_whygpu_cannot_tell_is_listed(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refuses = {"nvmlDeviceGetMemoryInfo": 999, "nvmlDeviceGetComputeMode": 4}
    install(StubDriver(gpus=(StubGpu(returns=refuses),)))
    assert gpu_facts.main([str(tmp_path / "out"), "--seconds", "0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "GPU 0: compute_mode: NVML answers 4 (Insufficient Permissions)" in lines
    assert any(line.startswith("GPU 0: memory_total: NVML answers 999") for line in lines)
    assert any(line.startswith("whygpu cannot tell WG501: ") for line in lines)
    assert {file.name for file in (tmp_path / "out").iterdir()} >= {"nvml.json", "check.json"}


def test_a_driver_that_does_not_start_is_said(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(StubDriver(nvml_init=9))
    assert gpu_facts.main([str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == "NVML does not start: Driver Not Loaded\n"


GPU = {
    "memory_total": {"value": 1 << 30},
    "ecc_uncorrected": {"error": 3, "text": "Not Supported"},
    "health": {
        "power_limit": {"value": 300_000},
        "power_default": {"error": 3, "text": "Not Supported"},
        "pcie": {"value": [1, 16, 4, 5]},
    },
}


def test_what_nvidia_smi_shows_in_another_way() -> None:
    row = ["1024", "[N/A]", "299.70", "300.00", "[N/A]", "[N/A]", "1", "8", "5"]
    found = list(gpu_facts.unlike(GPU, row))
    assert [line.partition(":")[0] for line in found] == [
        "power.default_limit",
        "pcie.link.width.max",
    ]
