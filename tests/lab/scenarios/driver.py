"""The NVIDIA driver and the hardware."""

from __future__ import annotations

from tests.lab.driver import StubDriver, StubGpu
from tests.lab.machines import GPU_MACHINE, MODULE, complete_cuda, install
from tests.lab.programs import LIST_GPUS
from tests.lab.scenario import Does, Root, Scenario
from tests.lab.stage import EVERY_NODE, PciDevice, Stage

ON_CPU = {"tensorflow": "cpu", "keras": "cpu"}

OPEN_CONTEXT = """
import ctypes
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
print("result:", cuda.cuDevicePrimaryCtxRetain(ctypes.byref(ctypes.c_void_p()), 0))
"""
"""What a framework does first on a GPU that it has chosen."""

PROHIBITED = StubGpu(compute_mode="prohibited", returns={"cuDevicePrimaryCtxRetain": 46})

SCENARIOS = (
    Scenario(
        "gpu-without-driver",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"failed call to cuInit.*303[\s\S]*GPUs: 0"),
        stage=Stage(pci=(PciDevice(driver=None),)),
        lay_out=(complete_cuda,),
        roots=(Root("no-nvidia-driver", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("no-driver-and-no-cudnn",),
    ),
    Scenario(
        "driver-updated-without-restart",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH[\s\S]*GPUs: 0"),
        driver=StubDriver(nvml_init=18, cu_init=803),
        stage=Stage(pci=(PciDevice(),), module="570.86.15", nodes=EVERY_NODE),
        lay_out=(complete_cuda,),
        roots=(Root("driver-library-version-mismatch", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("driver-not-restarted-and-library-empty",),
    ),
    Scenario(
        "kernel-module-not-loaded",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"CUDA_ERROR_UNKNOWN[\s\S]*GPUs: 0"),
        driver=StubDriver(nvml_init=9, cu_init=999),
        stage=Stage(pci=(PciDevice(driver=None),)),
        lay_out=(complete_cuda,),
        roots=(Root("nvidia-kernel-module-state", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "nouveau-holds-the-card",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"CUDA_ERROR_NO_DEVICE[\s\S]*GPUs: 0"),
        driver=StubDriver(nvml_init=9, cu_init=100),
        stage=Stage(pci=(PciDevice(driver="nouveau", kind="030000"),)),
        lay_out=(complete_cuda,),
        roots=(Root("nvidia-kernel-module-state", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("kernel-module-not-loaded",),
    ),
    Scenario(
        "unified-memory-module-missing",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"CUDA_ERROR_UNKNOWN[\s\S]*GPUs: 0"),
        driver=StubDriver(cu_init=999),
        stage=Stage(
            pci=(PciDevice(),),
            module=MODULE,
            uvm=False,
            nodes={"nvidia0": 0o666, "nvidiactl": 0o666},
        ),
        lay_out=(complete_cuda,),
        roots=(Root("nvidia-kernel-module-state", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("kernel-module-not-loaded",),
    ),
    Scenario(
        "fabric-manager-not-running",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"CUDA_ERROR_SYSTEM_NOT_READY[\s\S]*GPUs: 0"),
        driver=StubDriver(cu_init=802),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        roots=(Root("nvidia-kernel-module-state", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "device-nodes-closed",
        "tensorflow-2.21",
        Does(
            "open('/dev/nvidiactl')",
            "PermissionError",
            exit_code=1,
        ),
        driver=StubDriver(nvml_init=4, cu_init=100),
        # The owner is whoever runs this; only the group may use it.
        stage=Stage(pci=(PciDevice(),), module=MODULE, nodes=dict.fromkeys(EVERY_NODE, 0o060)),
        lay_out=(complete_cuda,),
        roots=(Root("device-permission-denied", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "driver-never-answers",
        "tensorflow-2.21",
        Does(LIST_GPUS, hangs_for=6),
        driver=StubDriver(hang="nvmlInit"),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        timeout=6,
        roots=(Root("driver-hung", "machine"),),
        verdicts={"tensorflow": "broken", "keras": "broken"},
        verdict="broken",
    ),
    Scenario(
        "driver-too-old",
        "tensorflow-2.21",
        Does(
            "import tensorflow as tf\ntf.ones(1)",
            "CUDA driver version is insufficient for CUDA runtime version",
            exit_code=1,
        ),
        driver=StubDriver(version="470.57.02", cuda="11.4"),
        stage=Stage(pci=(PciDevice(),), module="470.57.02", nodes=EVERY_NODE),
        lay_out=(complete_cuda, install("cuda-runtime")),
        roots=(Root("driver-too-old-for-cuda", "tensorflow"),),
        verdicts={"tensorflow": "broken", "keras": "broken"},
        verdict="broken",
    ),
    Scenario(
        "gpu-fallen-off-the-bus",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 0"),
        driver=StubDriver(gpus=(StubGpu(lost=True),), cu_init=100),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        roots=(Root("ecc-xid-hardware-error", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "cuda-does-not-start",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"CUDA_ERROR_UNKNOWN[\s\S]*GPUs: 0"),
        driver=StubDriver(cu_init=999),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        roots=(Root("cuda-init-failed", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "compute-mode-prohibited",
        "tensorflow-2.21",
        Does(OPEN_CONTEXT, "result: 46"),
        driver=StubDriver(gpus=(PROHIBITED,)),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        probe=False,
        roots=(Root("compute-mode-blocks", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        # Not one line is logged about it.
        "monitoring-library-missing",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 0", keeps_quiet_about="nvidia-ml|NVML|cuInit|dlopen"),
        driver=StubDriver(libraries=("cuda",)),
        stage=GPU_MACHINE,
        lay_out=(complete_cuda,),
        roots=(Root("nvml-library-missing", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
)
