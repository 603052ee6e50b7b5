"""What to do about a build without GPU code, on a machine and in a log."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.causes.evidence.driver_state import on_tegra
from whygpu.causes.evidence.framework_installs import gpu_build_in_log, gpu_build_of
from whygpu.causes.evidence.mac_gpus import advice_for_a_mac
from whygpu.causes.evidence.other_cards import AMD_MODEL, OTHER_CARD
from whygpu.model.derived import display_name
from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.observed import Known
from whygpu.model.remedy import PYTHON, command_line
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import OperatingSystem
from whygpu.model.target import Framework


def remedies_on(machine: Snapshot, framework: Framework) -> tuple[Remedy, ...]:
    if on_tegra(machine):
        return (_FOR_A_JETSON,)
    return (*_deletion(machine, framework), *_installation(framework, machine.system.os))


_FOR_A_JETSON = Remedy(
    "Install NVIDIA's build for the JetPack of this Jetson, or use its container: the packages of "
    "PyPI and of PyTorch's indexes for Arm are for the CPU, or for servers (a Jetson Thor may run "
    "those for CUDA 13). The command shows the release of JetPack's Linux.",
    command_line("cat /etc/nv_tegra_release"),
)


def _deletion(machine: Snapshot, framework: Framework) -> Iterator[Remedy]:
    """For a copy without metadata, which a package manager can neither see nor remove."""
    packages = machine.target.packages
    if isinstance(packages, Known) and all(
        package.name != framework.distribution for package in packages.value
    ):
        yield Remedy(
            f"First delete or move {framework.location}: no package manager knows these files, and "
            "none removes them."
        )


def _installation(framework: Framework, system: OperatingSystem) -> tuple[Remedy, ...]:
    if framework.name == "tensorflow":
        return (
            Remedy(
                "Replace it with the GPU build and its CUDA libraries.",
                gpu_build_of(framework, removes=(framework.distribution,)),
            ),
        )
    if framework.name == "jax":
        return (
            Remedy(
                "Add JAX's CUDA plugin of the same version.",
                gpu_build_of(framework),
            ),
        )
    if framework.name == "torch":
        return (
            Remedy(
                "Replace it with a CUDA build."
                if system == "linux"
                else "Replace it with a CUDA build, which is on an index of PyTorch's own.",
                gpu_build_of(framework, removes=("torch",)),
            ),
        )
    if framework.name == "onnxruntime":
        return (
            Remedy(
                "To use its GPU provider, install the GPU build instead.",
                gpu_build_of(framework, removes=(framework.distribution,)),
            ),
        )
    return (Remedy(f"Install a build of {display_name(framework.name)} with CUDA support."),)


_LLAMA = Remedy(
    "Install llama-cpp-python with its code for CUDA, which needs nvcc; for llama.cpp itself, "
    "configure its build with -DGGML_CUDA=ON.",
    command_line(
        PYTHON,
        "-m pip install --force-reinstall --no-cache-dir llama-cpp-python -C "
        "cmake.args=-DGGML_CUDA=on",
    ),
)
_LIGHTGBM = Remedy(
    "Install LightGBM (4.0 or newer) with its code for GPUs, which needs OpenCL; for device='cuda', "
    "write USE_CUDA instead of USE_GPU.",
    command_line(
        PYTHON,
        "-m pip install --force-reinstall --no-binary lightgbm lightgbm -C cmake.define.USE_GPU=ON",
    ),
)
_MXNET = Remedy(
    "Install the package of MXNet for the installed CUDA, such as mxnet-cu112 for CUDA 11.2, and "
    "uninstall mxnet first. MXNet has no releases any more: newer GPUs have no build.",
)
_OTHER_PROGRAMS = (
    (late(r"GPU offload support|no usable GPU found, --gpu-layers"), _LLAMA),
    (late(r"(?:GPU|CUDA) Tree Learner was not enabled"), _LIGHTGBM),
    (late(r"(?i:mxnet)[^\n]{0,300}(?:USE_CUDA=1|compile with CUDA)"), _MXNET),
)
"""Programs that are no frameworks of the planner have builds of their own."""


_JAX_IN_WSL = Remedy(
    "JAX has no build with CUDA for Windows itself: on a machine with an NVIDIA GPU, install WSL2, "
    "and JAX for Linux inside it.",
    command_line("wsl --install"),
)


_CPU_DISTRIBUTION = late(r"^tensorflow[-_]cpu(?:==| {1,40})\d", re.MULTILINE)
"""It has the files of tensorflow: who installs that has to uninstall this one first."""


def remedies_in(log: Log) -> tuple[Remedy, ...]:
    removes: tuple[str, ...] = ()
    if log.framework in ("onnxruntime", "torch"):
        removes = (log.framework,)
    elif log.says(_CPU_DISTRIBUTION):
        removes = ("tensorflow-cpu",)
    cpu = Remedy("On a machine without a GPU, select the CPU (--device cpu, device='cpu').")
    of_program = next((remedy for words, remedy in _OTHER_PROGRAMS if log.says(words)), None)
    if of_program is not None:
        return (of_program, cpu)
    if log.platform == "macos":
        return (advice_for_a_mac(log), cpu)
    if log.platform == "windows" and log.framework == "jax":
        return (_JAX_IN_WSL, cpu)
    if log.says(OTHER_CARD) or log.says(AMD_MODEL):
        return (
            Remedy(
                "The log names a GPU of AMD or Intel, which CUDA cannot use: install the build for "
                "it (ROCm for AMD, XPU for Intel); https://pytorch.org/get-started/locally/ has "
                "PyTorch's commands."
            ),
            cpu,
        )
    return (
        Remedy(
            "On a machine with an NVIDIA GPU, install the build with CUDA.",
            gpu_build_in_log(log, removes=removes),
        ),
        cpu,
    )
