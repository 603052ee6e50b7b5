"""Plans for sixty machines, each decided by hand before the planner was asked.

The releases and their Pythons, CUDA releases and GPU code come from the metadata and names of the
packages. The other rules come from the vendors' documents:

- CUDA 13 needs driver 580, CUDA 12 needs 525.60.13 (527.41 on Windows), CUDA 11 needs 450.80.02,
  10.2 needs 440.33, 10.1 needs 418.39, 9.0 needs 384.81 (NVIDIA's release notes and compatibility
  guide). Machine code runs on a later minor capability of the same major one; PTX needs a driver as
  new as its CUDA (CUDA C++ programming guide).
- TensorFlow has no GPU build for Windows after 2.10 and none for aarch64 (tensorflow.org/install).
- PyTorch's release notes name the indexes of each release: 2.8 to 2.11 have cu128, 2.12 to 2.14
  have cu126 and cu130, 2.15 has cu130 and cu132. cu126 is for Maxwell to Hopper.
- cuDNN 9.10 is the last for Maxwell, Pascal and Volta (cuDNN's support matrix).

`tools/check_described_plans.py` asks the package index whether the plans can be installed.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from tests.cases import each
from whygpu.model.install_plan import Constraint, PlanAnswer
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Unknown
from whygpu.planner.candidates import Table
from whygpu.planner.changes import changes
from whygpu.planner.machine import described
from whygpu.planner.planning import make_plan
from whygpu.planner.wishes import parse_all
from whygpu.tables.releases import versions_of

TABLE = Table(versions_of)
NOBODY_KNOWS = Unknown("not described")
NOTHING = MachineSpec(NOBODY_KNOWS, NOBODY_KNOWS, NOBODY_KNOWS, NOBODY_KNOWS, NOBODY_KNOWS)

LINUX, ARM, WINDOWS = "linux_x86_64", "linux_aarch64", "win_amd64"
MAC, INTEL_MAC = "macosx_arm64", "macosx_x86_64"


class Described(NamedTuple):
    """A machine, what is wished for, and what must come of it."""

    gpu: str
    driver: str
    python: str
    platform: str
    glibc: str
    wishes: str
    plan: str
    """The builds that must be chosen; empty if nothing fits."""
    because: Constraint | None = None
    """What decides that nothing fits; older releases may break other constraints."""
    code: int = 0
    pins: str = ""
    """What the command must pin beside the choices."""
    helps: str = ""
    """A change that must be proposed if nothing fits."""

    @property
    def title(self) -> str:
        gpu = self.gpu or "Mac"
        driver = f" {self.driver}" if self.driver else ""
        return f"{gpu}{driver} Python {self.python} {self.platform}: {self.wishes}"

    @property
    def machine(self) -> MachineSpec:
        return described(
            NOTHING,
            python=self.python,
            driver=self.driver or None,
            gpu=self.gpu or None,
            glibc=self.glibc or None,
            platform=self.platform,
        )


def linux(
    gpu: str, driver: str, python: str, wishes: str, plan: str = "", **more: str | int
) -> Described:
    glibc = str(more.pop("glibc", "2.35"))
    return Described(gpu, driver, python, LINUX, glibc, wishes, plan, **more)  # type: ignore[arg-type]


def arm(gpu: str, driver: str, python: str, wishes: str, plan: str = "", **more: str) -> Described:
    return Described(gpu, driver, python, ARM, "2.39", wishes, plan, **more)  # type: ignore[arg-type]


def windows(
    gpu: str, driver: str, python: str, wishes: str, plan: str = "", **more: str
) -> Described:
    return Described(gpu, driver, python, WINDOWS, "", wishes, plan, **more)  # type: ignore[arg-type]


MACHINES: tuple[Described, ...] = (
    # TensorFlow. 2.21.0 does not find its own cuSOLVER, so 2.20.0 comes first where it fits.
    linux("H100", "580.65.06", "3.12", "tensorflow", "tensorflow[and-cuda]==2.20.0"),
    linux("H100", "535.54.03", "3.11", "tensorflow", "tensorflow[and-cuda]==2.20.0"),
    linux("T4", "535.54.03", "3.12", "tensorflow", "tensorflow[and-cuda]==2.20.0", glibc="2.17"),
    linux(
        "GTX 1080 Ti",
        "535.183.01",
        "3.11",
        "tensorflow",
        "tensorflow[and-cuda]==2.20.0",
        pins="nvidia-cudnn-cu12==9.10.2.21",
    ),
    # Without code for 12.0; users report that its PTX fails.
    linux("RTX 5090", "580.65.06", "3.12", "tensorflow", "tensorflow[and-cuda]==2.21.0", code=4),
    # CUDA 12 needs a newer driver; 2.14 is the last for CUDA 11, and its extra ends at Python 3.10.
    linux("RTX 3090", "470.82", "3.9", "tensorflow", "tensorflow[and-cuda]==2.14.1"),
    linux("RTX 3090", "470.82", "3.11", "tensorflow", "tensorflow==2.13.1"),
    linux("K80", "470.82", "3.9", "tensorflow", "tensorflow[and-cuda]==2.14.1"),
    linux("T4", "450.80.02", "3.8", "tensorflow", "tensorflow==2.13.1", glibc="2.27"),
    linux("T4", "535.54.03", "3.8", "tensorflow==2.12", "tensorflow==2.12.1", glibc="2.27"),
    # CUDA 10.1, and PTX for 7.0.
    linux("T4", "418.87", "3.7", "tensorflow", "tensorflow==2.3.4", glibc="2.27"),
    # CUDA 9.0.
    linux("GTX 1080", "390.116", "3.6", "tensorflow", "tensorflow-gpu==1.12.3", glibc="2.27"),
    linux("H100", "580.65.06", "3.14", "tensorflow", because="python", helps="Python 3.13"),
    linux("A100", "440.33", "3.8", "tensorflow", because="driver", code=1),
    # JAX.
    linux("RTX 5090", "580.65.06", "3.12", "jax", "jax[cuda13]==0.12.0.1"),
    linux("RTX 5090", "570.86", "3.12", "jax", "jax[cuda12]==0.12.0.1"),
    linux(
        "V100",
        "580.65.06",
        "3.12",
        "jax",
        "jax[cuda12]==0.12.0.1",
        pins="nvidia-cudnn-cu12==9.10.2.21",
    ),
    linux("A100", "525.105.17", "3.10", "jax", "jax[cuda12]==0.6.2"),
    linux("A100", "525.105.17", "3.9", "jax", "jax[cuda12]==0.4.30"),
    linux(
        "A100",
        "525.105.17",
        "3.10",
        "jax==0.4.25",
        "jax[cuda12]==0.4.25",
        pins="nvidia-cudnn-cu12<9",
    ),
    linux("A100", "510.47", "3.10", "jax", because="driver", helps="driver 525.60.13"),
    linux("K80", "470.82", "3.10", "jax", because="driver"),
    # PyTorch.
    linux("RTX 4090", "580.65.06", "3.12", "torch", "torch==2.15.0"),
    linux("RTX 4090", "550.54.14", "3.12", "torch", "torch==2.14.1+cu126"),
    linux("RTX 5090", "570.86", "3.12", "torch", "torch==2.11.0+cu129"),
    linux("GTX 1080 Ti", "535.183.01", "3.11", "torch", "torch==2.14.1+cu126"),
    linux("V100", "535.183.01", "3.12", "torch", "torch==2.14.1+cu126"),
    linux("RTX 3090", "470.82", "3.11", "torch", "torch==2.7.1+cu118"),
    linux("T4", "535.54.03", "3.11", "torch", "torch==2.6.0", glibc="2.17"),
    linux("H100", "580.65.06", "3.15", "torch", "torch==2.15.0"),
    # Kepler: later builds have code for it, but a cuDNN that may not or does not support it.
    linux("K80", "470.82", "3.10", "torch", "torch==1.12.1"),
    # CUDA 10.2; machine code for 7.0 runs on 7.5.
    linux("RTX 2080 Ti", "440.33.01", "3.8", "torch", "torch==1.12.1", glibc="2.27"),
    linux("GTX 680", "470.82", "3.8", "torch", because="architecture"),
    linux("A100", "440.33.01", "3.8", "torch", because="driver"),
    # Free-threaded builds of Python have wheels of their own.
    linux("H100", "580.65.06", "3.13t", "tensorflow", because="python", helps="the usual build"),
    linux("H100", "580.65.06", "3.13t", "torch==2.6", because="python", helps="the usual build"),
    linux("H100", "580.65.06", "3.13t", "torch", "torch==2.12.0"),
    linux("H100", "580.65.06", "3.13t", "jax", "jax[cuda13]==0.10.2"),
    # Together.
    linux(
        "A100",
        "580.65.06",
        "3.12",
        "tensorflow jax",
        "tensorflow[and-cuda]==2.20.0 jax[cuda12]==0.12.0.1",
    ),
    linux("A100", "580.65.06", "3.12", "torch jax", "torch==2.15.0 jax[cuda13]==0.12.0.1"),
    linux("RTX 3060", "550.54.14", "3.11", "keras torch", "keras==3.15.1 torch==2.14.1+cu126"),
    linux("RTX 3060", "550.54.14", "3.11", "keras==2.15 torch", because="conflict"),
    # Keras 3.8 uses a function that JAX 0.6.1 removed; JAX 0.4.28 lacks one that Keras 3.12 uses.
    linux("A100", "580.65.06", "3.12", "keras==3.8 jax", "keras==3.8.0 jax[cuda12]==0.6.0"),
    linux("A100", "580.65.06", "3.10", "jax==0.4.28 keras", "jax[cuda12]==0.4.28 keras==3.11.3"),
    linux("H200", "580.65.06", "3.12", "keras", "keras==3.15.1 tensorflow[and-cuda]==2.20.0"),
    linux("K80", "470.82", "3.10", "keras==3.15 torch", because="python", code=1),
    # CuPy and ONNX Runtime: releases for CUDA 13 need a newer driver.
    linux("RTX 4090", "550.54.14", "3.12", "cupy", "cupy-cuda12x==14.2.0"),
    # For which GPUs ONNX Runtime has code is not on record.
    linux("RTX 4090", "550.54.14", "3.12", "onnxruntime", "onnxruntime-gpu==1.26.0", code=4),
    # Linux on aarch64.
    arm("GH200", "580.65.06", "3.12", "torch", "torch==2.15.0"),
    arm("GH200", "550.54.14", "3.12", "torch", "torch==2.14.1+cu126"),
    arm("GB10", "580.95.05", "3.12", "torch", "torch==2.15.0"),
    arm("GH200", "580.65.06", "3.12", "jax", "jax[cuda13]==0.12.0.1"),
    arm("GH200", "580.65.06", "3.12", "tensorflow", because="platform"),
    arm("Jetson AGX Orin", "540.3", "3.10", "torch", because="reports"),
    # Windows: the default package index has PyTorch for the CPU.
    windows("RTX 4090", "581.15", "3.12", "torch", "torch==2.15.0+cu132"),
    windows("RTX 4090", "551.23", "3.11", "torch", "torch==2.14.1+cu126"),
    windows("GTX 970", "551.23", "3.12", "torch", "torch==2.14.1+cu126"),
    windows("RTX 3060", "551.23", "3.10", "tensorflow", "tensorflow==2.10.1"),
    windows("RTX 3060", "551.23", "3.11", "tensorflow", because="platform", helps="Python 3.10"),
    windows("RTX 3060", "551.23", "3.12", "jax", because="platform", helps="Linux, as in WSL2"),
    # macOS: Metal.
    Described("", "", "3.12", MAC, "", "torch", "torch==2.15.0"),
    Described("", "", "3.11", MAC, "", "tensorflow", "tensorflow==2.18.1"),
    Described("", "", "3.12", MAC, "", "jax", "", because="build"),
    # The last wheels for Intel; whether its GPU is one of AMD is not known.
    Described("", "", "3.11", INTEL_MAC, "", "torch", "torch==2.2.2", code=4),
)


def planned(case: Described) -> PlanAnswer:
    return make_plan(case.machine, parse_all(case.wishes.split()), TABLE)


def reasons(answer: PlanAnswer) -> set[Constraint | None]:
    """What the releases break, of the wishes that no release satisfies."""
    fitting = {verdict.candidate.framework for verdict in answer.candidates if verdict.fits}
    return {v.breaks for v in answer.candidates if v.candidate.framework not in fitting}


@pytest.mark.slow
@each("case", MACHINES, ids=lambda case: case.title)
def test_a_described_machine(case: Described) -> None:
    answer = planned(case)
    chosen = [candidate.build for candidate in answer.plan.chosen] if answer.plan else []
    assert chosen == case.plan.split()
    if answer.plan is None:
        assert case.because in reasons(answer)
        assert answer.exit_code == 1
    else:
        assert answer.exit_code == case.code
        pins = " ".join(requirement for requirement, _ in answer.plan.solution.pins)
        assert case.pins in pins
    if case.helps:
        proposed = changes(case.machine, answer.wishes, TABLE)
        assert any(change.what.startswith(case.helps) for change in proposed)


def test_every_framework_and_platform_is_there() -> None:
    names = {name.partition("=")[0] for case in MACHINES for name in case.wishes.split()}
    assert names >= {"tensorflow", "keras", "jax", "torch"}
    assert {case.platform for case in MACHINES} == {LINUX, ARM, WINDOWS, MAC, INTEL_MAC}
    assert len(MACHINES) >= 40
