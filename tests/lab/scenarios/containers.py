"""Containers, and hardware of other makers."""

from __future__ import annotations

from tests.lab.driver import StubDriver
from tests.lab.machines import MODULE, complete_cuda, kernel
from tests.lab.programs import LIST_GPUS
from tests.lab.scenario import Does, Root, Scenario
from tests.lab.stage import PciDevice, Stage

ON_CPU = {"tensorflow": "cpu", "keras": "cpu"}
RADEON = PciDevice(vendor="1002", device="744c", kind="030000", driver="amdgpu")

SCENARIOS = (
    Scenario(
        "container-started-without-gpus",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"303[\s\S]*GPUs: 0"),
        stage=Stage(
            pci=(PciDevice(),), module=MODULE, run={".containerenv": 'engine="podman-5.2"\n'}
        ),
        lay_out=(complete_cuda,),
        roots=(Root("docker-no-gpu-runtime", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("container-without-gpus-and-no-cuda",),
    ),
    Scenario(
        "docker-started-without-gpus",
        "tensorflow-2.21",
        Does(LIST_GPUS, r"303[\s\S]*GPUs: 0"),
        stage=Stage(
            pci=(PciDevice(),),
            module=MODULE,
            files={"/proc/1/cgroup": "0::/docker/4f5d6a\n"},
        ),
        lay_out=(complete_cuda,),
        roots=(Root("docker-no-gpu-runtime", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("container-without-gpus-and-no-cuda",),
    ),
    Scenario(
        "radeon-card",
        "tensorflow-2.21",
        Does(LIST_GPUS, "GPUs: 0"),
        stage=Stage(pci=(RADEON,)),
        roots=(Root("non-nvidia-backend", "tensorflow"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "linux-driver-inside-wsl",
        "tensorflow-2.21",
        Does(
            "import os\nprint(os.uname().release)\n" + LIST_GPUS,
            r"microsoft[\s\S]*CUDA_ERROR_NO_DEVICE[\s\S]*GPUs: 0",
        ),
        driver=StubDriver(nvml_init=9, cu_init=100),
        stage=Stage(pci=(), nodes={"dxg": 0o666}),
        lay_out=(complete_cuda, kernel("5.15.167.4-microsoft-standard-WSL2")),
        unmendable="the lab has no driver library of Windows in /usr/lib/wsl",
        roots=(Root("wsl-no-gpu", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
    ),
    Scenario(
        "wsl-without-a-gpu-from-windows",
        "tensorflow-2.21",
        Does("import os\nprint(os.uname().release)\n" + LIST_GPUS, r"microsoft[\s\S]*GPUs: 0"),
        lay_out=(kernel("5.15.167.4-microsoft-standard-WSL2"),),
        stage=Stage(pci=()),
        roots=(Root("wsl-no-gpu", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
        like=("linux-driver-inside-wsl",),
    ),
)
