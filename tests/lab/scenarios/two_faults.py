"""Two faults at once: both have to be named, and in the order in which they are to be mended."""

from __future__ import annotations

from tests.lab.driver import StubDriver
from tests.lab.machines import (
    GPU_MACHINE,
    MODULE,
    complete_cuda,
    cuda_without,
    install,
    official_cuda,
    replace,
)
from tests.lab.programs import KERAS, LIST_GPUS, NAMING_LIBRARIES
from tests.lab.scenario import Does, Root, Scenario
from tests.lab.stage import EVERY_NODE, PciDevice, Stage

ON_CPU = {"tensorflow": "cpu", "keras": "cpu"}
BROKEN = {"tensorflow": "broken", "keras": "broken"}

SCENARIOS = (
    Scenario(
        "no-driver-and-no-cudnn",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"303[\s\S]*GPUs: 0"),
        stage=Stage(pci=(PciDevice(driver=None),)),
        lay_out=(cuda_without("cudnn"),),
        roots=(Root("no-nvidia-driver", "machine"), Root("cudnn-missing", "tensorflow")),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "gpu-hidden-and-cudnn-missing",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"CUDA_ERROR_NO_DEVICE[\s\S]*GPUs: 0"),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        environ={"CUDA_VISIBLE_DEVICES": "-1"},
        lay_out=(cuda_without("cudnn"),),
        roots=(Root("visible-devices-hides-gpu", "machine"), Root("cudnn-missing", "tensorflow")),
        verdicts=ON_CPU,
        verdict="cpu",
        like=(
            "no-gpu-selected",
            "cudnn-missing",
        ),
    ),
    Scenario(
        # Nothing works before protobuf is mended; the driver can wait.
        "old-protobuf-and-no-driver",
        "tensorflow-2.21",
        Does("import tensorflow", "runtime_version", exit_code=1),
        stage=Stage(pci=(PciDevice(driver=None),)),
        lay_out=(complete_cuda, install("protobuf-4")),
        roots=(Root("protobuf-conflict", "tensorflow"), Root("no-nvidia-driver", "machine")),
        verdicts=BROKEN,
        verdict="broken",
        like=(
            "protobuf-4",
            "no-driver-and-no-cudnn",
        ),
    ),
    Scenario(
        "keras-backend-missing-and-cusolver-not-searched",
        "tensorflow-2.21",
        Does(KERAS, "No module named 'jax'", exit_code=1),
        driver=StubDriver(),
        stage=GPU_MACHINE,
        environ={"KERAS_BACKEND": "jax"},
        lay_out=(official_cuda,),
        roots=(
            Root("keras-backend-missing", "keras"),
            Root("library-path-conflict", "tensorflow"),
        ),
        verdicts={"tensorflow": "cpu", "keras": "broken"},
        verdict="broken",
        like=(
            "keras-backend-not-installed",
            "official-install-of-2.21",
        ),
    ),
    Scenario(
        "driver-not-restarted-and-library-empty",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH[\s\S]*GPUs: 0"),
        driver=StubDriver(nvml_init=18, cu_init=803),
        stage=Stage(pci=(PciDevice(),), module="570.86.15", nodes=EVERY_NODE),
        lay_out=(complete_cuda, replace("nvidia/cublas/lib/libcublasLt.so.12", b"")),
        roots=(
            Root("driver-library-version-mismatch", "machine"),
            Root("library-file-broken", "tensorflow"),
        ),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "old-driver-and-cusolver-not-searched",
        "tensorflow-2.21",
        Does(
            NAMING_LIBRARIES + LIST_GPUS,
            r"Could not load dynamic library 'libcusolver.so.11'[\s\S]*GPUs: 0",
        ),
        driver=StubDriver(version="470.57.02", cuda="11.4"),
        stage=Stage(pci=(PciDevice(),), module="470.57.02", nodes=EVERY_NODE),
        lay_out=(official_cuda,),
        roots=(
            Root("driver-too-old-for-cuda", "tensorflow"),
            Root("library-path-conflict", "tensorflow"),
        ),
        verdicts=ON_CPU,
        verdict="cpu",
        like=(
            "driver-too-old",
            "official-install-of-2.21",
        ),
    ),
    Scenario(
        "container-without-gpus-and-no-cuda",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"Could not find cuda drivers[\s\S]*GPUs: 0"),
        stage=Stage(
            pci=(PciDevice(),), module=MODULE, run={".containerenv": 'engine="podman-5.2"\n'}
        ),
        lay_out=(cuda_without("cuda_runtime"),),
        roots=(
            Root("docker-no-gpu-runtime", "machine"),
            Root("cuda-runtime-missing", "tensorflow"),
        ),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
)
