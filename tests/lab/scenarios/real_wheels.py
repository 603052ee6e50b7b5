"""NVIDIA's real wheels in place of stubs: the large environments, which are built when named."""

from __future__ import annotations

from tests.lab.bench import Bench
from tests.lab.driver import StubDriver
from tests.lab.machines import GPU_MACHINE, replace
from tests.lab.programs import JAX_DEVICES, LIST_GPUS, NAMING_LIBRARIES
from tests.lab.scenario import Does, Root, Scenario
from tests.lab.stage import EVERY_NODE, PciDevice, Stage

ON_CPU = {"tensorflow": "cpu", "keras": "cpu"}
TENSORFLOW = "tensorflow-2.21-cuda"


def _search_cusolver(bench: Bench) -> None:
    bench.search_cusolver()


def _cannot_load(soname: str, reason: str = "cannot open shared object file") -> Does:
    says = f"Could not load dynamic library '{soname}'; dlerror: [^;]*{reason}"
    return Does(NAMING_LIBRARIES + LIST_GPUS, says + r"[\s\S]*GPUs: 0")


SCENARIOS = (
    Scenario(
        "real-official-install-of-2.21",
        TENSORFLOW,
        _cannot_load("libcusolver.so.11"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        slow=True,
        roots=(Root("library-path-conflict", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "real-every-library",
        TENSORFLOW,
        Does(LIST_GPUS, "GPUs: 1"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(_search_cusolver,),
        probe=False,
        slow=True,
        roots=(),
        verdicts={"tensorflow": "unknown", "keras": "unknown"},
        verdict="unknown",
        exit_code=4,
    ),
    Scenario(
        "real-cudnn-file-empty",
        TENSORFLOW,
        _cannot_load("libcudnn.so.9", "file too short"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        lay_out=(_search_cusolver, replace("nvidia/cudnn/lib/libcudnn.so.9", b"")),
        slow=True,
        roots=(Root("library-file-broken", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "real-driver-too-old",
        TENSORFLOW,
        Does(
            "import tensorflow as tf\ntf.ones(1)",
            "CUDA driver version is insufficient for CUDA runtime version",
            exit_code=1,
        ),
        driver=StubDriver(version="470.57.02", cuda="11.4"),
        stage=Stage(pci=(PciDevice(),), module="470.57.02", nodes=EVERY_NODE),
        lay_out=(_search_cusolver,),
        slow=True,
        roots=(Root("driver-too-old-for-cuda", "tensorflow"),),
        verdicts={"tensorflow": "broken", "keras": "broken"},
        verdict="broken",
    ),
    Scenario(
        "real-jax-with-the-gpu-hidden",
        "jax-cuda12",
        Does(JAX_DEVICES, r"CUDA_ERROR_NO_DEVICE[\s\S]*devices: \['cpu'\]"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        environ={"CUDA_VISIBLE_DEVICES": ""},
        slow=True,
        roots=(Root("visible-devices-hides-gpu", "machine"),),
        verdicts={"jax": "cpu"},
        verdict="cpu",
    ),
    Scenario(
        "real-jax-without-driver",
        "jax-cuda12",
        Does(JAX_DEVICES, r"Unknown CUDA error 303[\s\S]*devices: \['cpu'\]"),
        stage=Stage(pci=(PciDevice(driver=None),)),
        slow=True,
        roots=(Root("no-nvidia-driver", "machine"),),
        verdicts={"jax": "cpu"},
        verdict="cpu",
    ),
)
