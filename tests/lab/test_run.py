"""`whygpu run` on machines of the lab: each policy's effect, seen from inside the framework."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.lab.bench import Bench, cache
from tests.lab.cuda import cublas
from tests.lab.driver import NoCompiler, StubDriver, StubGpu
from tests.lab.machines import Step, complete_cuda, official_cuda
from tests.patience import PATIENCE

ONE = StubDriver()
THREE = StubDriver(
    gpus=(
        StubGpu(name="NVIDIA A100-SXM4-40GB"),
        StubGpu(name="Tesla T4", compute_capability="7.5", memory_total_mib=15360),
        StubGpu(name="NVIDIA A100-SXM4-40GB"),
    )
)

LOOK = """
import json, os, sys
import tensorflow as tf
gpus = tf.config.list_physical_devices("GPU")
details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
print(json.dumps({
    "gpus": [one["device_name"] for one in details],
    "environ": dict(os.environ),
}))
"""
"""What TensorFlow sees of the machine."""

VARIABLES = "import json, os; print(json.dumps({'environ': dict(os.environ)}))"
"""What any program is given; takes no framework and no time."""


class Seen(NamedTuple):
    code: int
    facts: dict[str, Any]
    """What the program printed as JSON; empty where it did not run."""
    said: str
    report: dict[str, Any]


class Machine:
    def __init__(self, bench: Bench) -> None:
        self.bench = bench

    def run(self, *options: str, code: str = LOOK) -> Seen:
        report = self.bench.folder / "report.json"
        report.unlink(missing_ok=True)
        command = [sys.executable, "-m", "whygpu", "run", "--report", str(report), *options]
        done = subprocess.run(
            [*command, "--", self.bench.python, "-c", code],
            env=self.bench.environ,
            cwd=self.bench.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        lines = done.stdout.strip().splitlines()
        facts = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        written = json.loads(report.read_text()) if report.exists() else {}
        return Seen(done.returncode, facts, done.stderr, written)


Make = Callable[..., Machine]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    benches: list[Bench] = []

    def made(target: str, driver: StubDriver | None, *steps: Step, **environ: str) -> Machine:
        bench = Bench(target, tmp_path)
        benches.append(bench)
        try:
            if driver is not None:
                bench.set(**driver.install(tmp_path / "driver", cache=cache()))
            bench.set(**environ)
            for step in steps:
                step(bench)
        except NoCompiler as reason:
            pytest.skip(str(reason))
        return Machine(bench)

    yield made
    for bench in benches:
        bench.close()


def test_the_published_tensorflow_has_its_gpu_under_run_and_not_without(make: Make) -> None:
    machine = make("tensorflow-2.21", ONE, official_cuda)
    without = machine.run("--no-repair")
    assert (without.facts["gpus"], without.report["repairs"]) == ([], [])
    refused = machine.run("--require", "gpu", "--no-repair")
    assert (refused.code, refused.facts, refused.report) == (126, {}, {})
    assert "WG203" in refused.said
    assert "nothing was run" in refused.said
    repaired = machine.run("--require", "gpu")
    assert repaired.facts["gpus"] == ["NVIDIA A100-SXM4-40GB"], repaired.said
    assert [repair["code"] for repair in repaired.report["repairs"]] == ["WG203"]
    assert "nvidia/cusolver/lib" in repaired.facts["environ"]["LD_LIBRARY_PATH"]
    assert "repaired for this run" in repaired.said


def test_the_same_with_the_real_wheels(make: Make) -> None:
    machine = make("tensorflow-2.21-cuda", ONE)
    assert machine.run("--no-repair").facts["gpus"] == []
    assert machine.run().facts["gpus"] == ["NVIDIA A100-SXM4-40GB"]


def test_a_copy_that_does_not_fit_is_taken_off_the_search_list(make: Make) -> None:
    def older_first(bench: Bench) -> None:
        complete_cuda(bench)
        other = bench.folder / "toolkit" / "lib64"
        bench.library(cublas((12, 1, 3), old=True), other)
        bench.prepend("LD_LIBRARY_PATH", other)

    machine = make("tensorflow-2.21", ONE, older_first)
    assert machine.run("--no-repair").facts["gpus"] == []
    repaired = machine.run()
    assert repaired.facts["gpus"] == ["NVIDIA A100-SXM4-40GB"], repaired.said
    assert "toolkit" not in repaired.facts["environ"]["LD_LIBRARY_PATH"]
    assert "removed from LD_LIBRARY_PATH" in repaired.said


def test_what_cannot_be_mended_is_left_alone(make: Make) -> None:
    machine = make("tensorflow-2.21", ONE)
    seen = machine.run(code=VARIABLES)
    assert seen.report["repairs"] == []
    assert seen.facts["environ"].get("LD_LIBRARY_PATH") == machine.bench.environ["LD_LIBRARY_PATH"]


def test_a_run_that_ends_on_the_cpu_fails_where_the_gpu_is_required(make: Make) -> None:
    machine = make("tensorflow-2.21", ONE, complete_cuda)
    code = "import tensorflow as tf; tf.config.set_visible_devices([], 'GPU'); print(tf.ones(1)[0])"
    seen = machine.run("--require", "gpu", code=code)
    assert (seen.code, seen.report["exit_code"], seen.report["device"]) == (1, 1, "cpu")
    assert seen.report["fallback"] is True
    assert "--require gpu" in seen.said


def test_a_choice_of_gpus(make: Make) -> None:
    machine = make("tensorflow-2.21", THREE, complete_cuda)
    seen = machine.run("--device", "gpu:2,1")
    assert seen.facts["gpus"] == ["NVIDIA A100-SXM4-40GB", "Tesla T4"], seen.said
    assert seen.facts["environ"]["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    one = machine.run("--device", "GPU-57470001", code=VARIABLES).facts["environ"]
    both = seen.facts["environ"]["CUDA_VISIBLE_DEVICES"].split(",")
    assert [one["CUDA_VISIBLE_DEVICES"]] == both[1:]
    assert all(name.startswith("GPU-5747") for name in both)


@pytest.mark.parametrize("device", ["gpu:3", "gpu:0,9", "H100", "GPU-ffff", "GPU-5747", "gpu:1,1"])
def test_a_choice_that_does_not_exist(make: Make, device: str) -> None:
    machine = make("tensorflow-2.21", THREE)
    refused = machine.run("--device", device, code=VARIABLES)
    assert (refused.code, refused.facts) == (126, {})
    if device != "gpu:1,1":
        assert refused.said.count("NVIDIA A100") == 2, "the list of what there is"


@pytest.mark.parametrize(
    ("given", "device", "after"),
    [
        ("1", "gpu", "1"),
        ("0,2", "gpu:2", "GPU-57470002-7768-4179-8067-707500000000"),
        ("0,2", "gpu:1", None),
        ("", "gpu", None),
        ("-1", "gpu:0", None),
        ("", "auto", "-1"),
    ],
)
def test_what_is_visible_already_is_not_gone_beyond(
    make: Make, given: str, device: str, after: str | None
) -> None:
    same = StubDriver(gpus=(StubGpu(), StubGpu(), StubGpu()))
    machine = make("tensorflow-2.21", same, CUDA_VISIBLE_DEVICES=given)
    seen = machine.run("--device", device, code=VARIABLES)
    if after is None:
        assert seen.code == 126
        assert "CUDA_VISIBLE_DEVICES" in seen.said
        return
    assert seen.facts["environ"]["CUDA_VISIBLE_DEVICES"] == after, seen.said
    assert (device != "auto") or "--device auto: on the CPU" in seen.said


def test_the_cpu_leaves_the_gpu_alone(make: Make) -> None:
    machine = make("tensorflow-2.21", ONE, complete_cuda)
    code = "import tensorflow as tf; print(tf.config.list_physical_devices('GPU'), tf.ones(1)[0])"
    seen = machine.run("--device", "cpu", code=code)
    assert (seen.code, seen.report["device"], seen.report["fallback"]) == (0, "cpu", False)


def test_a_limit_on_memory(make: Make) -> None:
    """The stub driver computes nothing: the first operation fails, but the limit is set by then."""
    machine = make("tensorflow-2.21", ONE, complete_cuda)
    code = """
import json, os, tensorflow as tf
assert "CUDA_VISIBLE_DEVICES" not in os.environ
try:
    tf.ones(1)
except Exception: pass
gpu = tf.config.list_physical_devices("GPU")[0]
limits = [one.memory_limit for one in tf.config.get_logical_device_configuration(gpu)]
print(json.dumps({"limits": limits, "environ": dict(os.environ)}))
"""
    part = machine.run("--memory", "4GiB", code=VARIABLES).facts["environ"]
    assert part["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.1000"
    seen = machine.run("--memory", "10%", code=code)
    assert seen.facts["limits"] == [4096], seen.said
    assert seen.facts["environ"]["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.1000"
    (limit,) = [each for each in seen.report["in_force"] if each["framework"] == "tensorflow"]
    assert [call["outcome"] for call in limit["calls"]] == ["executed"]


def test_a_limit_does_not_start_cuda_too_early(make: Make) -> None:
    machine = make("tensorflow-2.21", ONE, complete_cuda)
    code = """
import json, os, tensorflow as tf
os.environ["CUDA_VISIBLE_DEVICES"] = ""
print(json.dumps({"gpus": len(tf.config.list_physical_devices("GPU"))}))
"""
    assert machine.run("--memory", "4GiB", code=code).facts["gpus"] == 0


def test_isolation_keeps_the_driver_and_auto_takes_the_gpu(make: Make) -> None:
    def other_folder(bench: Bench) -> None:
        complete_cuda(bench)
        bench.prepend("LD_LIBRARY_PATH", bench.folder / "elsewhere")

    machine = make("tensorflow-2.21", ONE, other_folder)
    seen = machine.run("--isolate", "--device", "auto")
    assert seen.facts["gpus"] == ["NVIDIA A100-SXM4-40GB"]
    folders = seen.facts["environ"]["LD_LIBRARY_PATH"].split(":")
    assert str(machine.bench.folder / "driver") in folders
    assert str(machine.bench.folder / "elsewhere") not in folders
    assert seen.facts["environ"]["PYTHONNOUSERSITE"] == "1"


def test_a_driver_that_fails_is_told_before_anything_runs(make: Make) -> None:
    machine = make("tensorflow-2.21", StubDriver(nvml_init=18), complete_cuda)
    refused = machine.run("--require", "gpu")
    assert (refused.code, refused.facts) == (126, {})
    auto = machine.run("--device", "auto", code=VARIABLES)
    assert auto.facts["environ"]["CUDA_VISIBLE_DEVICES"] == "-1"
    assert "--device auto: on the CPU" in auto.said


def test_a_driver_that_does_not_start(make: Make) -> None:
    """NVML answers; CUDA does not. Only starting it shows that."""
    machine = make("tensorflow-2.21", StubDriver(cu_init=999), complete_cuda)
    refused = machine.run("--require", "gpu")
    assert (refused.code, refused.facts) == (126, {})
    assert "CUDA_ERROR_UNKNOWN" in refused.said
    auto = machine.run("--device", "auto", code=VARIABLES)
    assert auto.facts["environ"]["CUDA_VISIBLE_DEVICES"] == "-1"


def test_auto_says_that_the_framework_cannot(make: Make) -> None:
    seen = make("tensorflow-2.21", ONE).run("--device", "auto", code=VARIABLES)
    assert "--device auto: on the CPU, because TensorFlow 2.21.0" in seen.said


JAX = """
import json, os, jax
print(json.dumps({"platform": jax.devices()[0].platform, "environ": dict(os.environ)}))
"""


def test_jax_with_its_plugin(make: Make) -> None:
    """JAX goes on without a word where CUDA does not serve it: a requirement makes it a failure."""
    machine = make("jax-cuda12", ONE)
    cpu = machine.run("--device", "cpu", code=JAX)
    assert (cpu.facts["platform"], cpu.report["fallback"]) == ("cpu", False)
    assert "cuInit" not in cpu.said, "CUDA was asked"
    fallen = machine.run("--require", "gpu", "--memory", "4GiB", code=JAX)
    assert (fallen.code, fallen.report["device"], fallen.report["fallback"]) == (1, "cpu", True)
    assert fallen.facts["environ"]["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.1000"
