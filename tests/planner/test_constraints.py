"""Each constraint breaks at its edge, in the fixed order, with a reason that has the numbers."""

from __future__ import annotations

from tests.cases import each
from tests.planner.small_table import (
    A6000,
    GTX_1080,
    K80,
    LINUX,
    RTX_5090,
    TABLE,
    machine,
    release,
)
from whygpu.model.install_plan import Candidate, FitCheck
from whygpu.model.machine_spec import MachineSpec, PlannedGpu
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.planner.candidates import candidates
from whygpu.planner.constraints import checks, usable
from whygpu.planner.planning import judge


def candidate(framework: str, version: str, extra: str | None = None) -> Candidate:
    return next(
        item
        for item in candidates(framework, TABLE)
        if item.version == version and extra in (None, item.extra)
    )


def step(name: str, found: Candidate, where: MachineSpec) -> FitCheck:
    return next(item for item in checks(found, where) if item.constraint == name)


TF_2_20 = candidate("tensorflow", "2.20.0")
TF_2_12 = candidate("tensorflow", "2.12.1")
JAX_12 = candidate("jax", "0.7.2", "cuda12")
JAX_13 = candidate("jax", "0.7.2", "cuda13")
KERAS = candidate("keras", "3.12.0")
MAXWELL = PlannedGpu("GeForce GTX 750 Ti", (5, 0), None)
NOBODY_LOOKED = Unknown("nobody looked")
BLANK = MachineSpec(NOBODY_LOOKED, NOBODY_LOOKED, NOBODY_LOOKED, NOBODY_LOOKED, NOBODY_LOOKED)
ARM_TAGS = ("manylinux_2_28_aarch64", "manylinux2014_aarch64", "manylinux_2_5_x86_64")
ALPINE = machine()._replace(glibc=Absent("the C library is musl 1.2.5"))
HOPPER = PlannedGpu("H200", (9, 0), "data-center")
ORIN = PlannedGpu("Jetson AGX Orin", (8, 7), "jetson")


def with_gpus(*gpus: PlannedGpu) -> MachineSpec:
    return machine()._replace(gpus=Known(gpus, "example"))


@each(
    ("name", "found", "where", "outcome", "reason"),
    [
        (
            "python",
            TF_2_20,
            machine(python="3.14"),
            "breaks",
            "has wheels for Python 3.9 to 3.13, you have 3.14",
        ),
        ("python", TF_2_20, machine(python="3.13.1"), "holds", "has wheels for Python 3.13"),
        (
            "python",
            JAX_12,
            machine(python="3.10"),
            "breaks",
            "needs Python >=3.11, you have 3.10",
        ),
        (
            "platform",
            TF_2_12,
            machine(platform="win_amd64"),
            "breaks",
            "has no GPU support on Windows: use WSL2",
        ),
        (
            "platform",
            TF_2_20,
            machine(platform="linux_aarch64"),
            "breaks",
            "has no wheel for Linux on aarch64",
        ),
        ("platform", TF_2_20, machine(), "holds", "has wheels for Linux on x86_64"),
        (
            "build",
            next(iter(candidates("jax", TABLE, "macosx_arm64"))),
            machine(platform="macosx_arm64"),
            "breaks",
            "cannot use the GPU on macOS: jax-metal, Apple's plug-in, is no longer developed and "
            "does not work with JAX after 0.5.0 (https://github.com/jax-ml/jax/issues/34109)",
        ),
        (
            "platform",
            KERAS,
            machine(platform="macosx_arm64"),
            "holds",
            "has wheels for macOS on Apple silicon",
        ),
        (
            "glibc",
            TF_2_20._replace(parts=(release("tensorflow", "2.20.0", platforms=ARM_TAGS),)),
            machine(platform="linux_aarch64", glibc="2.16"),
            "breaks",
            "needs glibc 2.17 or newer, you have 2.16",
        ),
        ("glibc", KERAS, ALPINE, "holds", "does not need a specific glibc"),
        (
            "glibc",
            JAX_12,
            machine()._replace(glibc=Unknown("nobody looked")),
            "unchecked",
            "was not checked against glibc: nobody looked",
        ),
        (
            "glibc",
            JAX_12,
            machine(glibc="2.26"),
            "breaks",
            "its jax-cuda12-plugin needs glibc 2.27 or newer, you have 2.26",
        ),
        ("glibc", JAX_12, machine(glibc="2.27"), "holds", "needs glibc 2.27 or newer"),
        ("build", TF_2_12, machine(), "holds", "is built for CUDA 11.8 and cuDNN 8"),
        ("build", JAX_12, machine(), "holds", "is built for CUDA 12"),
        (
            "build",
            candidate("jax", "0.4.20"),
            machine(),
            "breaks",
            "its GPU builds were never on the package index, only on the project's own page",
        ),
        (
            "driver",
            TF_2_20._replace(cuda="99.0"),
            machine(),
            "unchecked",
            "no driver floor is on record for CUDA 99.0",
        ),
        (
            "driver",
            TF_2_20,
            machine()._replace(driver=Absent("no driver")),
            "unchecked",
            "needs driver 525.60.13 or newer, and there is none here",
        ),
        (
            "driver",
            TF_2_20,
            machine(platform="win_amd64", driver="525.60.13"),
            "breaks",
            "needs driver 527.41 or newer, you have 525.60.13",
        ),
        (
            "driver",
            TF_2_20._replace(cuda="10"),
            machine(driver="418.39"),
            "unchecked",
            "needs driver 410.48 or 440.33, depending on its exact CUDA; you have 418.39",
        ),
        (
            "driver",
            TF_2_20,
            machine(driver="525.60.12"),
            "breaks",
            "needs driver 525.60.13 or newer, you have 525.60.12",
        ),
        (
            "driver",
            TF_2_20,
            machine(driver="525.60.13"),
            "holds",
            "needs driver 525.60.13 or newer, you have 525.60.13",
        ),
        (
            "driver",
            JAX_13,
            machine(driver="575.57.08"),
            "breaks",
            "needs driver 580 or newer, you have 575.57.08",
        ),
        (
            "driver",
            TF_2_12,
            machine(driver="470.82", gpu=RTX_5090),
            "breaks",
            "needs driver 570 or newer for GeForce RTX 5090 (12.0), you have 470.82",
        ),
        (
            "driver",
            TF_2_20,
            machine(driver="590.44", gpu=GTX_1080),
            "breaks",
            "needs a driver of branch 580 or older for GeForce GTX 1080 (6.1), because later ones "
            "do not support this GPU; you have 590.44",
        ),
        (
            "driver",
            TF_2_20,
            machine(driver="582.28", gpu=GTX_1080),
            "holds",
            "needs driver 525.60.13 or newer, you have 582.28",
        ),
        (
            "architecture",
            TF_2_20,
            machine(gpu=A6000),
            "holds",
            "has machine code for RTX A6000 (8.6): sm_60 to sm_90 and PTX for 9.0",
        ),
        (
            "architecture",
            TF_2_20._replace(architectures=("sm_90", "compute_100", "compute_120")),
            machine(gpu=HOPPER),
            "holds",
            "has machine code for H200 (9.0): sm_90 and PTX for 10.0 and 12.0",
        ),
        (
            "architecture",
            JAX_12._replace(architectures=("compute_80",)),
            machine(gpu=A6000),
            "note",
            "has PTX for 8.0: on RTX A6000 (8.6) its few own kernels are compiled at their first "
            "use",
        ),
        (
            # A new GPU may take the PTX of its own kernels, and its compiler does not know it.
            "architecture",
            JAX_12._replace(architectures=("sm_80", "compute_90"), cuda="12.3"),
            machine(gpu=PlannedGpu("RTX 5090", (12, 0), "geforce")),
            "unchecked",
            "has sm_80 and PTX for 9.0, which RTX 5090 (12.0) may compile, but its own compiler is "
            "as old as CUDA 12.3, which knows GPUs up to 9.0",
        ),
        (
            "architecture",
            TF_2_20._replace(architectures=("sm_80",)),
            machine(gpu=HOPPER),
            "breaks",
            "has sm_80: H200 (9.0) is too new for all of it",
        ),
        (
            "architecture",
            TF_2_20._replace(architectures=("sm_80",)),
            machine(gpu=ORIN),
            "unchecked",
            "has sm_80: NVIDIA does not promise that this runs on Jetson AGX Orin (8.7)",
        ),
        (
            "architecture",
            TF_2_20,
            machine()._replace(gpus=Absent("the PCI bus")),
            "unchecked",
            "was not checked against the GPU: none was found (the PCI bus)",
        ),
        (
            "architecture",
            TF_2_20,
            machine(gpu=RTX_5090),
            "note",
            "has sm_60 to sm_90 and PTX for 9.0: on GeForce RTX 5090 (12.0) every kernel is "
            "compiled at first use; expect minutes",
        ),
        (
            "architecture",
            TF_2_20,
            machine(gpu=K80),
            "breaks",
            "has sm_60 to sm_90 and PTX for 9.0: Tesla K80 (3.7) is older than all of it",
        ),
        (
            "architecture",
            JAX_13,
            machine(gpu=GTX_1080),
            "breaks",
            "is built for CUDA 13, which needs 7.5 and excludes GeForce GTX 1080 (6.1)",
        ),
        (
            "architecture",
            JAX_12._replace(cuda="11.8"),
            machine(gpu=RTX_5090),
            "unchecked",
            "is built for CUDA 11.8, which supports up to 9.0: whether it has PTX for GeForce RTX "
            "5090 (12.0) is not on record",
        ),
        (
            "architecture",
            JAX_12._replace(cuda="99.0"),
            machine(),
            "unchecked",
            "its GPU code is not on record",
        ),
        ("defect", TF_2_20, machine(), "holds", "has no defect on record"),
        (
            "defect",
            candidate("tensorflow", "2.21.0"),
            machine(),
            "breaks",
            "does not search the folder of its own cusolver, so it finds no GPU as installed",
        ),
    ],
)
def test_a_constraint(
    name: str, found: Candidate, where: MachineSpec, outcome: str, reason: str
) -> None:
    assert step(name, found, where) == FitCheck(name, outcome, reason)  # type: ignore[arg-type]


def test_ptx_needs_a_driver_that_reads_it() -> None:
    """Compatibility within a major CUDA release covers machine code only."""
    old = candidate("tensorflow", "2.12.1")
    assert step("driver", old, machine(driver="520.61.05", gpu=HOPPER)).outcome == "holds"
    newer = old._replace(cuda="12.5.1", architectures=("sm_80", "compute_80"))
    broken = step("driver", newer, machine(driver="550.54.14", gpu=HOPPER))
    assert broken.outcome == "breaks"
    assert "needs driver 555 or newer to compile its PTX (CUDA 12.5)" in broken.reason
    assert step("driver", newer, machine(driver="555.42.02", gpu=HOPPER)).outcome == "holds"


@each(
    ("driver", "cuda", "gpu"),
    [
        ("537.13", "12.5.1", HOPPER),  # no branch on record has this number
        ("595.10", "13.9", HOPPER),  # no branch on record has this CUDA release
        ("580.65.06", "12.5.1", ORIN),  # the driver of a Jetson is a part of its system
        ("580.65.06", "12.5.1", PlannedGpu("a GPU", (99, 0), None)),
    ],
)
def test_a_driver_is_refused_only_for_a_floor_on_record(
    driver: str, cuda: str, gpu: PlannedGpu
) -> None:
    compiled = TF_2_20._replace(cuda=cuda, architectures=("compute_80",))
    assert step("driver", compiled, machine(driver=driver, gpu=gpu)).outcome == "holds"


@each(
    ("capability", "outcome"),
    [((4, 9), "breaks"), ((5, 0), "unchecked"), ((9, 0), "unchecked"), ((9, 1), "unchecked")],
)
def test_the_cuda_release_shows_what_unread_binaries_cannot_contain(
    capability: tuple[int, int], outcome: str
) -> None:
    """CUDA 12.5 builds code for 5.0 to 9.0."""
    unread = TF_2_20._replace(architectures=(), cuda="12.5")
    gpu = PlannedGpu("a GPU", capability, None)
    assert step("architecture", unread, machine(gpu=gpu)).outcome == outcome


def test_unread_binaries_are_enough_of_a_framework_that_compiles_its_kernels() -> None:
    unread = TF_2_20._replace(architectures=(), cuda="12.5", framework="cupy")
    assert step("architecture", unread, machine(gpu=GTX_1080)).outcome == "note"


def test_the_first_constraint_in_order_is_the_one_that_is_named() -> None:
    hopeless = machine(python="3.6", glibc="2.5", driver="390.1", gpu=K80)
    assert judge(TF_2_20, hopeless).breaks == "python"
    assert judge(TF_2_20, hopeless._replace(python=Known("3.11", ""))).breaks == "glibc"
    rest = machine(driver="390.1", gpu=K80)
    assert judge(TF_2_20, rest).breaks == "driver"
    assert judge(TF_2_20, machine(gpu=MAXWELL)).breaks == "architecture"


@each("fact", ["python", "platform", "glibc", "driver", "gpus"])
def test_an_unknown_fact_is_unchecked_and_excludes_nothing(fact: str) -> None:
    constraint = "architecture" if fact == "gpus" else fact
    unknown = machine()._replace(**{fact: Unknown("nobody looked")})  # type: ignore[arg-type]
    verdict = judge(TF_2_20, unknown)
    assert verdict.fits
    assert len(verdict.unchecked) == 1
    assert "nobody looked" in verdict.unchecked[0]
    assert step(constraint, TF_2_20, unknown).outcome == "unchecked"


def test_musl_excludes_what_needs_glibc() -> None:
    verdict = judge(TF_2_20, ALPINE)
    assert (verdict.breaks, verdict.reason) == (
        "glibc",
        "needs glibc, and the C library is musl 1.2.5",
    )


def test_every_gpu_has_to_be_served() -> None:
    both = machine()._replace(gpus=Known((*_gpus(machine()), MAXWELL), "example"))
    assert judge(TF_2_20, both).breaks == "architecture"


@each(
    ("gpus", "outcome"),
    [
        ((A6000, HOPPER), "holds"),
        ((A6000, RTX_5090), "note"),
        ((RTX_5090, ORIN), "unchecked"),
        ((ORIN, K80, A6000), "breaks"),
    ],
)
def test_of_several_gpus_the_worst_served_decides(
    gpus: tuple[PlannedGpu, ...], outcome: str
) -> None:
    found = TF_2_20._replace(architectures=("sm_80", "sm_90", "compute_90"))
    assert step("architecture", found, with_gpus(*gpus)).outcome == outcome


@each(
    ("facts", "where", "fits"),
    [
        ({}, machine(), True),
        ({"platforms": ()}, machine(), True),
        ({"platforms": LINUX}, machine(), True),
        ({"platforms": ("linux_x86_64",)}, machine(), True),
        ({"platforms": ("manylinux_2_17_aarch64",)}, machine(), False),
        ({"platforms": ("macosx_10_9_x86_64",)}, machine(), False),
        ({"platforms": ("macosx_11_0_universal2",)}, machine(platform="macosx_arm64"), True),
        ({"platforms": ("macosx_11_0_universal2",)}, machine(), False),
        ({"platforms": ("win_amd64",)}, machine(platform="win_amd64"), True),
        ({"pythons": ("3.12",)}, machine(), False),
        ({"requires_python": ">=3.11.4"}, machine(python="3.11"), True),
        ({"requires_python": ">=3.11.4"}, machine(python="3.11.2"), False),
        ({"requires_python": "!=3.11.2"}, machine(python="3.11.2"), False),
        ({"glibc": "2.28"}, machine(glibc="2.28"), True),
        ({"glibc": "2.28"}, machine(glibc="2.27"), False),
        ({"glibc": "2.28"}, machine(glibc="2.27", platform="linux_aarch64"), True),
        ({"glibc": "2.28"}, ALPINE, False),
        ({"glibc": ""}, ALPINE, True),
        ({"platforms": LINUX, "pythons": ("3.6",), "glibc": "2.28"}, BLANK, True),
    ],
)
def test_a_package_needs_a_wheel_for_the_machine(
    facts: dict[str, object], where: MachineSpec, fits: bool
) -> None:
    assert usable(release("numpy", "2.0", **facts), where) is fits


def _gpus(where: MachineSpec) -> tuple[PlannedGpu, ...]:
    assert isinstance(where.gpus, Known)
    return where.gpus.value
