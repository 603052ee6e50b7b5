"""A small release table with real facts, and machines to plan for."""

from __future__ import annotations

from collections.abc import Iterable

from whygpu.model.machine_spec import MachineSpec, PlannedGpu
from whygpu.model.observed import Known
from whygpu.model.release import Release
from whygpu.planner.candidates import Table

LINUX = ("manylinux_2_17_x86_64",)
PASCAL_TO_HOPPER = ("sm_60", "sm_70", "sm_80", "sm_89", "sm_90", "compute_90")


def release(package: str, version: str, **facts: object) -> Release:
    """A row in which only what matters is said."""
    plain: dict[str, object] = {
        "file": f"{package.replace('-', '_')}-{version}.whl",
        "pythons": (),
        "requires_python": "",
        "platforms": ("any",),
        "glibc": "",
        "cuda": "",
        "cudnn": "",
        "architectures": (),
        "requires": (),
        "unsearched": (),
    }
    return Release(package=package, version=version, **{**plain, **facts})  # type: ignore[arg-type]


def tensorflow(version: str, pythons: str, cuda: str, *requires: str, **facts: object) -> Release:
    return release(
        facts.pop("package", "tensorflow"),  # type: ignore[arg-type]
        version,
        **{
            "pythons": tuple(pythons.split()),
            "platforms": LINUX,
            "glibc": "2.17",
            "cuda": cuda,
            "cudnn": "9" if cuda.startswith("12.5") else "8",
            "architectures": PASCAL_TO_HOPPER,
            "requires": requires,
            **facts,
        },
    )


def _and_cuda(*lines: str) -> tuple[str, ...]:
    return tuple(f'{line}; extra == "and-cuda"' for line in lines)


ROWS = (
    tensorflow(
        "1.15.5",
        "3.6 3.7",
        "10.0",
        "numpy<1.19.0,>=1.16.0",
        "protobuf>=3.6.1",
        package="tensorflow-gpu",
        architectures=("sm_30", "sm_60", "sm_70", "compute_70"),
        cudnn="7",
        glibc="2.12",
    ),
    tensorflow("2.0.0", "3.6 3.7", "", "numpy<2.0,>=1.16.0", "protobuf>=3.6.1", cudnn=""),
    tensorflow(
        "2.0.0", "3.6 3.7", "10.0", package="tensorflow-gpu", cudnn="7", architectures=("sm_70",)
    ),
    tensorflow(
        "2.10.1",
        "3.7 3.8 3.9 3.10",
        "11.2",
        "numpy>=1.20",
        "protobuf<3.20,>=3.9.2",
        "keras<2.11,>=2.10.0",
        platforms=(*LINUX, "win_amd64"),
        architectures=("sm_35", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "compute_80"),
    ),
    tensorflow(
        "2.12.1",
        "3.8 3.9 3.10 3.11",
        "11.8",
        "numpy<1.24,>=1.22",
        "keras<2.13,>=2.12.0",
        platforms=(*LINUX, "win_amd64"),
        architectures=("sm_35", "sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "compute_80"),
    ),
    tensorflow(
        "2.15.1",
        "3.9 3.10 3.11",
        "12.2",
        "numpy<2.0.0,>=1.23.5",
        "keras<2.16,>=2.15.0",
        "ml-dtypes~=0.3.1",
        *_and_cuda("nvidia-cublas-cu12==12.2.5.6", "nvidia-cudnn-cu12==8.9.4.25"),
        architectures=("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_90", "compute_90"),
    ),
    tensorflow(
        "2.19.1",
        "3.9 3.10 3.11 3.12",
        "12.5.1",
        "numpy<2.2.0,>=1.26.0",
        "keras>=3.5.0",
        "ml-dtypes<1.0.0,>=0.5.1",
        *_and_cuda("nvidia-cublas-cu12==12.5.3.2", "nvidia-cudnn-cu12==9.3.0.75"),
    ),
    tensorflow(
        "2.20.0",
        "3.9 3.10 3.11 3.12 3.13",
        "12.5.1",
        "numpy>=1.26.0",
        "keras>=3.10.0",
        "ml-dtypes<1.0.0,>=0.5.1",
        *_and_cuda("nvidia-cublas-cu12<13.0,>=12.5.3.2", "nvidia-cudnn-cu12<10.0,>=9.3.0.75"),
    ),
    tensorflow(
        "2.21.0",
        "3.10 3.11 3.12 3.13",
        "12.5.1",
        "numpy>=1.26.0",
        "keras>=3.12.0",
        "ml-dtypes<1.0.0,>=0.5.1",
        *_and_cuda("nvidia-cublas-cu12<13.0,>=12.5.3.2", "nvidia-cudnn-cu12<10.0,>=9.3.0.75"),
        glibc="2.27",
        unsearched=("cusolver",),
    ),
    release(
        "jax",
        "0.4.20",
        requires_python=">=3.9",
        requires=("numpy>=1.22", 'jaxlib==0.4.20+cuda12.cudnn89; extra == "cuda12_pip"'),
    ),
    release(
        "jax",
        "0.7.2",
        requires_python=">=3.11",
        requires=(
            "jaxlib<=0.7.2,>=0.7.2",
            "ml_dtypes>=0.5.0",
            "numpy>=2.0",
            'jax-cuda12-plugin[with-cuda]<=0.7.2,>=0.7.2; extra == "cuda12"',
            'jax-cuda13-plugin[with-cuda]<=0.7.2,>=0.7.2; extra == "cuda13"',
        ),
    ),
    release("jaxlib", "0.7.2", pythons=("3.11", "3.12", "3.13"), platforms=LINUX, glibc="2.27"),
    *(
        release(
            f"jax-cuda{cuda}-plugin",
            "0.7.2",
            pythons=("3.11", "3.12", "3.13"),
            platforms=LINUX,
            glibc="2.27",
            requires=(
                f'nvidia-cudnn-cu{cuda}<10.0,>=9.8; sys_platform == "linux" and '
                'extra == "with-cuda"',
            ),
        )
        for cuda in (12, 13)
    ),
    release(
        "torch",
        "2.8.0",
        pythons=("3.9", "3.10", "3.11", "3.12", "3.13"),
        platforms=(*LINUX, "win_amd64"),
        cuda="12.8",
        cudnn="9",
        architectures=("sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
        requires=('nvidia-cudnn-cu12==9.10.2.21; platform_system == "Linux"',),
    ),
    release(
        "torch",
        "2.11.0",
        pythons=("3.10", "3.11", "3.12", "3.13"),
        platforms=(*LINUX, "win_amd64"),
        cuda="13.0",
        cudnn="9",
        architectures=("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
        requires=('nvidia-cudnn-cu13==9.19.0.56; platform_system == "Linux"',),
    ),
    *(release("keras", version) for version in ("2.10.0", "2.12.0", "2.15.0", "3.5.0", "3.12.0")),
    *(
        release("numpy", version, requires_python=python)
        for version, python in (
            ("1.18.5", ">=3.5,<3.9"),
            ("1.23.5", ">=3.8,<3.12"),
            ("1.26.4", ">=3.9,<3.13"),
            ("2.1.3", ">=3.10"),
            ("2.3.4", ">=3.11"),
        )
    ),
    *(release("ml-dtypes", version) for version in ("0.3.2", "0.4.1", "0.5.3")),
    *(release("protobuf", version) for version in ("3.19.6", "3.20.3", "4.25.3", "6.31.1")),
    *(release("nvidia-cublas-cu12", version) for version in ("12.2.5.6", "12.5.3.2", "12.9.1.4")),
    *(
        release("nvidia-cudnn-cu12", version)
        for version in ("8.9.4.25", "9.3.0.75", "9.10.2.21", "9.27.0.42")
    ),
    *(release("nvidia-cudnn-cu13", version) for version in ("9.19.0.56", "9.27.0.42")),
)


def table_of(rows: Iterable[Release]) -> Table:
    by_package: dict[str, list[Release]] = {}
    for row in rows:
        by_package.setdefault(row.package, []).append(row)
    return Table(lambda package: by_package.get(package, []))


TABLE = table_of(ROWS)

A6000 = PlannedGpu("RTX A6000", (8, 6), "workstation")
RTX_5090 = PlannedGpu("GeForce RTX 5090", (12, 0), "geforce")
GTX_1080 = PlannedGpu("GeForce GTX 1080", (6, 1), "geforce")
K80 = PlannedGpu("Tesla K80", (3, 7), "data-center")


def machine(
    python: str = "3.11",
    driver: str = "580.65.06",
    gpu: PlannedGpu = A6000,
    glibc: str = "2.39",
    platform: str = "linux_x86_64",
) -> MachineSpec:
    return MachineSpec(
        python=Known(python, "example"),
        platform=Known(platform, "example"),
        glibc=Known(glibc, "example"),
        driver=Known(driver, "example"),
        gpus=Known((gpu,), "example"),
    )
