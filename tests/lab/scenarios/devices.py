"""Selection and visibility of GPUs, and their memory."""

from __future__ import annotations

from tests.lab.bench import Bench
from tests.lab.driver import StubDriver, StubGpu, StubProcess
from tests.lab.machines import GPU_MACHINE, complete_cuda, run_first
from tests.lab.programs import JAX_DEVICES, LIST_GPUS
from tests.lab.scenario import Does, Root, Scenario, warning

ON_CPU = {"tensorflow": "cpu", "keras": "cpu"}
HIDES_GPUS = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
CANNOT_SAY = {"tensorflow": "unknown", "keras": "unknown"}


def _jax_plugin(bench: Bench) -> None:
    """The plugin's metadata; where JAX is told to leave it alone, nothing more is looked at."""
    (info,) = bench.site.glob("jax-*.dist-info")
    version = info.name.split("-")[1].removesuffix(".dist")
    for name in ("jax-cuda12-plugin", "jax-cuda12-pjrt"):
        bench.add_distribution(name, version, {})


SCENARIOS = (
    Scenario(
        "no-gpu-selected",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"CUDA_ERROR_NO_DEVICE[\s\S]*GPUs: 0"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        environ={"CUDA_VISIBLE_DEVICES": ""},
        roots=(Root("visible-devices-hides-gpu", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "gpu-selected-that-is-not-there",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"CUDA_ERROR_NO_DEVICE[\s\S]*GPUs: 0"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        environ={"CUDA_VISIBLE_DEVICES": "1"},
        roots=(Root("visible-devices-hides-gpu", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("no-gpu-selected",),
    ),
    Scenario(
        "selection-cut-short",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 1"),
        driver=StubDriver(gpus=(StubGpu(), StubGpu(), StubGpu())),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        environ={"CUDA_VISIBLE_DEVICES": "0,7,1"},
        probe=False,
        roots=(warning("visible-devices-cut-short", "machine"),),
        verdicts=CANNOT_SAY,
        verdict="unknown",
    ),
    Scenario(
        "jax-told-to-use-the-cpu",
        "jax",
        Does(JAX_DEVICES, r"devices: \['cpu'\]"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(_jax_plugin,),
        environ={"JAX_PLATFORMS": "cpu", "KERAS_BACKEND": "jax"},
        roots=(Root("platform-variable-excludes-gpu", "jax"),),
        verdicts={"jax": "cpu", "keras": "cpu"},
        verdict="cpu",
    ),
    Scenario(
        "variable-that-does-nothing",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 1"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        environ={"TF_GPU_ALLOCATOR": "cuda_malloc_asinc"},
        probe=False,
        roots=(warning("environment-variable-ineffective", "tensorflow"),),
        verdicts=CANNOT_SAY,
        verdict="unknown",
    ),
    Scenario(
        "memory-held-by-another-process",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 1"),
        driver=StubDriver(
            gpus=(StubGpu(memory_used_mib=40500, processes=(StubProcess(4711, "python", 40400),)),)
        ),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        probe=False,
        roots=(warning("oom-other-process", "machine"),),
        verdicts=CANNOT_SAY,
        verdict="unknown",
    ),
    Scenario(
        # A package that TensorFlow imports hides the GPU from it, and says nothing.
        "gpu-hidden-by-a-package",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 0"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda, run_first("absl", HIDES_GPUS)),
        roots=(Root("gpu-unused", "tensorflow"),),
        log_shows=("visible-devices-hides-gpu",),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "device-count-fails",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"could not retrieve CUDA device count[\s\S]*GPUs: 0"),
        driver=StubDriver(returns={"cuDeviceGetCount": 999}),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        roots=(Root("cuda-init-failed", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("cuda-does-not-start",),
    ),
)
