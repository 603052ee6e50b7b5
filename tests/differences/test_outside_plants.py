"""Changes planted on recorded machines by somebody who did not write `differences`.

Which differences are the reason was decided by hand: for most before the first run, for some after
a plant had turned out to contradict itself. Each is planted among the changes of an ordinary week,
and asked for in both directions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.cases import each
from tests.differences.noise import noisy
from tests.differences.test_planted import (
    ON_CPU,
    compared,
    driver,
    gpu,
    known,
    titles,
    variable,
    visible,
)
from tests.kit import machine
from tests.test_recorded_machines import FOLDER
from whygpu import load_snapshot
from whygpu.model.driver import DeviceNode, DriverLibrary
from whygpu.model.observed import Absent, Known
from whygpu.model.snapshot import Snapshot

Plant = Callable[[Snapshot], Snapshot]


def recorded(name: str) -> Snapshot:
    return load_snapshot(str(FOLDER / f"{name}.json"))


KERAS_JAX = recorded("h200-healthy-keras-jax")
KERAS_TORCH = recorded("h200-healthy-keras-torch")
TENSORFLOW = recorded("h200-tensorflow-healthy")
WITH_HEALTH = machine()


def together(*plants: Plant) -> Plant:
    def plant(there: Snapshot) -> Snapshot:
        for each_one in plants:
            there = each_one(there)
        return there

    return plant


def on_cpu(plant: Plant) -> Plant:
    """With what the frameworks do if they see no GPU."""
    return lambda there: plant(there)._replace(probes=ON_CPU)


def cuda_answers(answer: str) -> Plant:
    """With what CUDA says when it is started."""

    def plant(there: Snapshot) -> Snapshot:
        probes = tuple(
            probe._replace(facts=(("libcuda.so.1", "loaded"), ("cuInit", answer)))
            if probe.name == "cuda"
            else probe
            for probe in ON_CPU
        )
        return there._replace(probes=probes)

    return plant


UNKNOWN_ERROR = cuda_answers("999 CUDA_ERROR_UNKNOWN")


def nodes(change: Callable[[DeviceNode], DeviceNode | None]) -> Plant:
    def plant(there: Snapshot) -> Snapshot:
        assert isinstance(there.driver.device_nodes, Known)
        changed = map(change, there.driver.device_nodes.value)
        return driver(device_nodes=known(tuple(node for node in changed if node is not None)))(
            there
        )

    return plant


def release(version: str) -> Plant:
    """Another release of the driver, with all of its parts."""

    def plant(there: Snapshot) -> Snapshot:
        cuda, nvml = there.driver.cuda_library, there.driver.nvml_library
        assert isinstance(cuda, Known)
        assert isinstance(nvml, Known)
        return driver(
            version=known(version),
            kernel_module=known(version),
            cuda_library=known(cuda.value._replace(version=known(version))),
            nvml_library=known(nvml.value._replace(version=known(version))),
        )(there)

    return plant


def stub_first(there: Snapshot) -> Snapshot:
    """The folder with the stub of libcuda, for linking, is searched first."""
    stubs = "/usr/local/cuda/lib64/stubs"
    found = DriverLibrary(f"{stubs}/libcuda.so.1", known("13.0"), "toolkit-stub")
    path = f"{stubs}:/usr/local/nvidia/lib64:/usr/local/nvidia/lib"
    return driver(cuda_library=known(found))(variable("LD_LIBRARY_PATH", path)(there))


def closed(node: DeviceNode) -> DeviceNode:
    if node.path != "/dev/nvidia0":
        return node
    return node._replace(mode="crw-rw----", group="video", usable=False)


class Planted(NamedTuple):
    name: str
    before: Snapshot
    plant: Plant
    reasons: tuple[tuple[str, list[list[str]]], ...]
    """The code of each new cause, and the sets of differences that explain it."""


HIDDEN = ("WG401", [["CUDA_VISIBLE_DEVICES"]])
PLANTS = [
    Planted("hidden", TENSORFLOW, lambda _: recorded("h200-tensorflow-hidden"), (HIDDEN,)),
    Planted(
        "a library file is gone",
        TENSORFLOW,
        lambda _: recorded("h200-tensorflow-cusolver"),
        (("WG203", [["libcusolver.so.11"]]),),
    ),
    Planted(
        "a library file is gone, and cuDNN is old",
        TENSORFLOW,
        lambda _: recorded("h200-tensorflow-cudnn8"),
        (("WG203", [["libcusolver.so.11"]]), ("WG205", [["nvidia-cudnn-cu12"]])),
    ),
    Planted(
        "the plugins of JAX are gone",
        KERAS_JAX,
        lambda _: recorded("h200-jax-cpu-build"),
        (("WG301", [["jax"]]),),
    ),
    Planted("no such GPU", KERAS_JAX, lambda _: recorded("h200-hidden-out-of-range"), (HIDDEN,)),
    Planted(
        "a closed device node",
        KERAS_JAX,
        on_cpu(nodes(closed)),
        (("WG104", [["/dev/nvidia0"]]),),
    ),
    Planted(
        "nvidia_uvm is not loaded",
        KERAS_JAX,
        together(driver(uvm=known(False)), UNKNOWN_ERROR),
        (("WG103", [["nvidia_uvm"]]),),
    ),
    Planted(
        "the node of nvidia_uvm is gone",
        KERAS_TORCH,
        together(
            nodes(lambda node: None if node.path == "/dev/nvidia-uvm" else node), UNKNOWN_ERROR
        ),
        (("WG103", [["/dev/nvidia-uvm"]]),),
    ),
    Planted(
        "a stub before the driver's library",
        KERAS_JAX,
        on_cpu(stub_first),
        (("WG203", [["LD_LIBRARY_PATH"]]),),
    ),
    Planted(
        "hidden, and a folder that does not matter",
        KERAS_JAX,
        on_cpu(
            together(
                visible(""),
                variable("LD_LIBRARY_PATH", "/usr/local/nvidia/lib64:/usr/local/nvidia/lib:/opt/x"),
            )
        ),
        (HIDDEN,),
    ),
    Planted(
        "hidden, and a new driver that does not matter",
        KERAS_TORCH,
        on_cpu(together(release("580.200"), visible(""))),
        (HIDDEN,),
    ),
    Planted(
        "half of a driver",
        KERAS_TORCH,
        on_cpu(driver(kernel_module=known("570.10"))),
        (("WG102", [["the driver"]]),),
    ),
    Planted("no GPU", KERAS_JAX, on_cpu(driver(gpus=known(()))), (("WG103", [["GPU 0"]]),)),
    Planted(
        "prohibited",
        TENSORFLOW,
        on_cpu(gpu(compute_mode=known("prohibited"))),
        (("WG109", [["the compute mode of GPU 0"]]),),
    ),
    Planted(
        "a driver that hangs",
        KERAS_TORCH,
        on_cpu(driver(state=known("hung"), gpus=Absent("planted"))),
        (("WG105", [["the driver"]]),),
    ),
    Planted(
        "JAX is told to use the CPU, and PyTorch is not",
        KERAS_JAX,
        lambda _: recorded("h200-keras-jax-on-cpu"),
        (("WG403", [["JAX_PLATFORMS"]]),),
    ),
    Planted(
        "memory is held",
        KERAS_JAX,
        lambda _: recorded("h200-memory-held"),
        (("WG501", [["the memory in use on GPU 0"]]),),
    ),
    Planted(
        "memory errors",
        KERAS_TORCH,
        gpu(ecc_uncorrected=known(12)),
        (("WG107", [["the memory errors of GPU 0"]]),),
    ),
    Planted(
        "a narrow PCIe link",
        WITH_HEALTH,
        lambda _: machine("[driver.gpus.0.health.pcie]\nwidth = 4"),
        (("WG113", [["the PCIe link of GPU 0"]]),),
    ),
    Planted(
        "the second half of a pair",
        release("580.20.01")(KERAS_JAX),
        lambda _: recorded("h200-old-compat-library"),
        (("WG102", [["LD_LIBRARY_PATH", "the driver"]]),),
    ),
    Planted("a toolkit elsewhere", KERAS_JAX, variable("CUDA_HOME", "/opt/cuda-11"), ()),
    Planted("a setting of a compiler", KERAS_JAX, variable("TORCH_CUDA_ARCH_LIST", "3.5"), ()),
    Planted("a new driver", KERAS_TORCH, release("580.200"), ()),
    Planted("a newer driver", TENSORFLOW, release("595.10"), ()),
    Planted(
        "the same GPU by its number", KERAS_JAX, variable("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ()
    ),
    Planted("nothing", TENSORFLOW, lambda there: there, ()),
]


@pytest.mark.slow
@each("planted", PLANTS)
@pytest.mark.parametrize("seed", [5, 11])
def test_the_planted_change_is_the_reason(planted: Planted, seed: int) -> None:
    good, bad = planted.before, noisy(planted.plant(planted.before), seed, packages=80)
    for before, after, side in ((good, bad, "after"), (bad, good, "before")):
        found = compared(before, after)
        reasons = {
            (
                reason.finding.code if reason.finding else "",
                str([sorted(each) for each in titles(found, reason)]),
            )
            for reason in found.reasons
        }
        assert reasons == {(code, str(sets)) for code, sets in planted.reasons}, found.headline
        assert all(reason.present == side for reason in found.reasons)
        assert all(reason.certainly_all for reason in found.reasons)
        if not planted.reasons:
            assert "the verdict is the same" in found.headline


def test_a_difference_that_only_makes_it_slower_is_not_called_harmless() -> None:
    slow = machine("[driver.gpus.0.health]\npower_limit_watts = 100")
    found = compared(WITH_HEALTH, noisy(slow, seed=5))
    assert found.reasons == ()
    assert "matters here" not in found.headline
    assert "changes a verdict; see the note" in found.headline
    assert any("WG116" in note and "100 W of 300 W" in note for note in found.notes)
    back = compared(noisy(slow, seed=5), WITH_HEALTH)
    assert "matters here" in back.headline
    assert back.notes == ()
