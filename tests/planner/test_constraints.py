"""Each constraint breaks at its edge, in the fixed order, with a reason that has the numbers."""

from __future__ import annotations

from tests.cases import each
from tests.planner.small_table import GTX_1080, K80, RTX_5090, TABLE, machine
from whygpu.model.install_plan import Candidate, FitCheck
from whygpu.model.machine_spec import MachineSpec, PlannedGpu
from whygpu.model.observed import Absent, Known, Unknown
from whygpu.planner.candidates import candidates
from whygpu.planner.constraints import checks
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
        (
            "glibc",
            JAX_12,
            machine(glibc="2.26"),
            "breaks",
            "its jax-cuda12-plugin needs glibc 2.27 or newer, you have 2.26",
        ),
        ("glibc", JAX_12, machine(glibc="2.27"), "holds", "needs glibc 2.27 or newer"),
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
    hopper = PlannedGpu("H200", (9, 0), "data-center")
    old = candidate("tensorflow", "2.12.1")
    assert step("driver", old, machine(driver="520.61.05", gpu=hopper)).outcome == "holds"
    newer = old._replace(cuda="12.5.1", architectures=("sm_80", "compute_80"))
    broken = step("driver", newer, machine(driver="550.54.14", gpu=hopper))
    assert broken.outcome == "breaks"
    assert "needs driver 555 or newer to compile its PTX (CUDA 12.5)" in broken.reason
    assert step("driver", newer, machine(driver="555.42.02", gpu=hopper)).outcome == "holds"


def test_the_first_constraint_in_order_is_the_one_that_is_named() -> None:
    hopeless = machine(python="3.6", glibc="2.5", driver="390.1", gpu=K80)
    assert judge(TF_2_20, hopeless).breaks == "python"
    assert judge(TF_2_20, hopeless._replace(python=Known("3.11", ""))).breaks == "glibc"
    rest = machine(driver="390.1", gpu=K80)
    assert judge(TF_2_20, rest).breaks == "driver"
    assert judge(TF_2_20, machine(gpu=K80)).breaks == "architecture"


@each("fact", ["python", "platform", "glibc", "driver", "gpus"])
def test_an_unknown_fact_is_unchecked_and_excludes_nothing(fact: str) -> None:
    unknown = machine()._replace(**{fact: Unknown("nobody looked")})
    verdict = judge(TF_2_20, unknown)
    assert verdict.fits
    assert len(verdict.unchecked) == 1
    assert "nobody looked" in verdict.unchecked[0]


def test_musl_excludes_what_needs_glibc() -> None:
    alpine = machine()._replace(glibc=Absent("the C library is musl 1.2.5"))
    verdict = judge(TF_2_20, alpine)
    assert (verdict.breaks, verdict.reason) == (
        "glibc",
        "needs glibc, and the C library is musl 1.2.5",
    )


def test_every_gpu_has_to_be_served() -> None:
    both = machine()._replace(gpus=Known((*_gpus(machine()), K80), "example"))
    assert judge(TF_2_20, both).breaks == "architecture"


def _gpus(where: MachineSpec) -> tuple[PlannedGpu, ...]:
    assert isinstance(where.gpus, Known)
    return where.gpus.value


def test_macos_has_no_cuda() -> None:
    mac = machine(platform="macosx_arm64")
    everywhere = TF_2_20._replace(parts=(TF_2_20.parts[0]._replace(platforms=("any",)),))
    assert "macOS" in step("platform", everywhere, mac).reason


def test_a_cuda_release_without_a_floor_is_unchecked() -> None:
    future = TF_2_20._replace(cuda="99.0")
    assert step("driver", future, machine()).outcome == "unchecked"
