"""Healthy machines: nothing may be found on them."""

from __future__ import annotations

from tests.lab.driver import StubDriver
from tests.lab.machines import GPU_MACHINE, complete_cuda
from tests.lab.programs import JAX_DEVICES, LIST_GPUS, LIST_GPUS_V1, TORCH_CUDA
from tests.lab.scenario import Does, Scenario
from tests.lab.stage import PciDevice, Stage

INTEL_GRAPHICS = PciDevice("8086", "9a49", "030000", driver="i915", address="0000:00:02.0")
SCENARIOS = (
    Scenario(
        "tensorflow-without-gpu",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 0"),
        roots=(),
        verdicts={"tensorflow": "cpu", "keras": "cpu"},
        verdict="no-gpu",
        exit_code=0,
    ),
    Scenario(
        "jax-without-gpu",
        "jax",
        Does(JAX_DEVICES, r"devices: \['cpu'\]"),
        environ={"KERAS_BACKEND": "jax"},
        roots=(),
        verdicts={"jax": "cpu", "keras": "cpu"},
        verdict="no-gpu",
        exit_code=0,
    ),
    Scenario(
        "torch-without-gpu",
        "torch",
        Does(TORCH_CUDA, "CUDA: False None"),
        environ={"KERAS_BACKEND": "torch"},
        roots=(),
        verdicts={"torch": "cpu", "keras": "cpu"},
        verdict="no-gpu",
        exit_code=0,
    ),
    Scenario(
        "tensorflow-1.15-without-gpu",
        "tensorflow-gpu-1.15",
        Does(LIST_GPUS_V1, "GPUs: 0"),
        roots=(),
        verdicts={"tensorflow": "cpu"},
        verdict="no-gpu",
        exit_code=0,
    ),
    Scenario(
        "laptop-with-intel-graphics",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 0"),
        stage=Stage(pci=(INTEL_GRAPHICS,)),
        roots=(),
        verdicts={"tensorflow": "cpu", "keras": "cpu"},
        verdict="no-gpu",
        exit_code=0,
        like=("tensorflow-without-gpu",),
    ),
    Scenario(
        "container-on-a-machine-without-gpu",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 0"),
        stage=Stage(pci=(), run={".containerenv": 'engine="podman-5.2"\n'}),
        roots=(),
        verdicts={"tensorflow": "cpu", "keras": "cpu"},
        verdict="no-gpu",
        exit_code=0,
        like=("tensorflow-without-gpu",),
    ),
    Scenario(
        # Computing needs a real GPU: as far as files and the driver tell, all is well.
        "gpu-and-every-library",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 1"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        probe=False,
        roots=(),
        verdicts={"tensorflow": "unknown", "keras": "unknown"},
        verdict="unknown",
        exit_code=4,
    ),
    Scenario(
        "login-node-with-a-driver-and-no-gpu",
        "tensorflow-2.21",
        Does(LIST_GPUS, "CUDA_ERROR_NO_DEVICE"),
        driver=StubDriver(gpus=(), cu_init=100, nvml_init=9),
        stage=Stage(pci=()),
        roots=(),
        verdicts={"tensorflow": "cpu", "keras": "cpu"},
        verdict="no-gpu",
        exit_code=0,
    ),
)
