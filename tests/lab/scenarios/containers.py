"""Containers, and hardware of other makers."""

from __future__ import annotations

from tests.lab.machines import MODULE, complete_cuda
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
        lay_out=complete_cuda,
        roots=(Root("docker-no-gpu-runtime", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
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
        lay_out=complete_cuda,
        roots=(Root("docker-no-gpu-runtime", "machine"),),
        verdicts=ON_CPU,
        verdict="cpu",
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
)
