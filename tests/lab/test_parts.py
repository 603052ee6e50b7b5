"""What scenarios are built from does what it says, and harms nothing outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import stage as stages
from tests.lab.bench import Bench, cache, site_of
from tests.lab.cuda import cublas
from tests.lab.driver import NoCompiler, StubDriver
from tests.lab.machines import GPU_MACHINE
from tests.lab.stage import PciDevice, Stage


@pytest.fixture
def on_stage(tmp_path: Path) -> list[str]:
    reason = stages.unavailable(cache())
    if reason is not None:
        pytest.skip(reason)
    stage = Stage(pci=(PciDevice(driver="nouveau"),), module="1.2", nodes={"nvidia0": 0o060})
    return stages.command(stage, tmp_path)


def test_a_stage_is_seen_by_its_program_and_by_nobody_else(on_stage: list[str]) -> None:
    script = "cat /sys/bus/pci/devices/*/vendor /sys/module/nvidia/version; echo x > /dev/null"
    done = subprocess.run([*on_stage, "sh", "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("0x10de\n1.2\n", "", 0)
    assert not Path("/dev/nvidia0").exists()


def test_a_closed_device_is_closed_to_root_as_well(on_stage: list[str]) -> None:
    done = subprocess.run([*on_stage, "cat", "/dev/nvidia0"], capture_output=True, text=True)
    assert "Permission denied" in done.stderr


def test_a_copy_of_a_target_leaves_the_target_alone(tmp_path: Path) -> None:
    shared = site_of("tensorflow-2.21")
    paths = ("tensorflow/__init__.py", "keras/__init__.py", "six.py")
    before = {path: (shared / path).read_bytes() for path in paths}
    bench = Bench("tensorflow-2.21", tmp_path)
    try:
        bench.replace("tensorflow/__init__.py", "raise SystemExit('replaced')")
        bench.replace("six.py", "")
        bench.remove("keras")
        assert not (bench.site / "keras").exists()
        done = subprocess.run([bench.python, "-c", "import tensorflow"], capture_output=True)
        assert done.stderr == b"replaced\n"
    finally:
        bench.close()
    assert {path: (shared / path).read_bytes() for path in paths} == before


def test_stub_libraries_have_versions_and_needs(tmp_path: Path) -> None:
    try:
        file = cublas((12, 1, 3)).build(tmp_path)
    except NoCompiler as reason:
        pytest.skip(str(reason))
    script = """
import ctypes, sys
try:
    ctypes.CDLL(sys.argv[1])
except OSError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script, str(file)], capture_output=True, text=True)
    assert "libcublasLt.so.12: cannot open shared object file" in done.stdout


def test_the_gpu_machine_and_the_stub_driver_go_together() -> None:
    assert GPU_MACHINE.module == StubDriver().version
