"""Whether the release of a framework, the Python, the CUDA and the GPU that a person names fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from whygpu.causes.evidence.log_gpu_generations import Age, LogGpu, age_for, gpus_of
from whygpu.model.derived import display_name
from whygpu.model.lazy_regex import late
from whygpu.model.log import Log
from whygpu.model.release import Release
from whygpu.tables import torch_indexes
from whygpu.tables.architectures import fit, parse_code
from whygpu.tables.releases import versions_of
from whygpu.tables.versions import release_numbers

_PYTHON = late(r"(?i)\bpython ?(?P<number>[23]\.\d{1,2})\b")
_PACKAGES = (
    ("tensorflow", ("tensorflow", "tensorflow-gpu")),
    ("torch", ("torch",)),
    ("jax", ("jaxlib",)),
)
"""The packages with the code of each framework, in the release table."""
_CUDA = late(r"(?i)\bcuda(?: ?toolkit)?[ =:-]?v?(?P<number>\d{1,2}(?:\.\d)?)\b")


_WINDOWS = late(r"(?i)\bwin(?:dows)? ?1[01]\b|\bwindows\b")
_LINUX = late(r"(?i)\b(?:wsl|docker|container|linux|ubuntu|colab)")


class Fit(NamedTuple):
    """What the tables say of a release and something else that is named beside it."""

    fits: bool
    says: str


def age_for_named_release(log: Log, gpu: LogGpu) -> Age:
    """Whether every CUDA build of the release that the log names is for older, or newer, GPUs."""
    row = _named_release(log)
    ages = {age_for(gpu.capability, cuda) for cuda in _builds(row)} if row is not None else set()
    return ages.pop() if len(ages) == 1 else "fits" if "fits" in ages else "unknown"


def fits(log: Log) -> Iterator[Fit]:
    """Of the release that a log names: with the Python, the GPU, the system and the CUDA in it."""
    row = _named_release(log)
    if row is None:
        return
    framework = row.package.removesuffix("-gpu").removesuffix("lib")
    name = f"{display_name(framework)} {log.version_of(framework)}"
    python = _first(log, "python")
    if python and row.pythons:
        yield Fit(
            python in row.pythons,
            f"{name} has packages for Python {row.pythons[0]} to {row.pythons[-1]}"
            + (f", and none for {python}" if python not in row.pythons else ""),
        )
    builds = _builds(row)
    gpu = next(gpus_of(log), None)
    age = age_for_named_release(log, gpu) if gpu is not None else "unknown"
    for_cuda = f"{name} is built for CUDA {' or '.join(builds)}"
    if gpu is not None and age == "fits":
        yield _of_code(row, name, for_cuda, gpu)
    elif age != "unknown":
        than = "is older than" if age == "too-new" else "no longer supports"
        yield Fit(False, f"{for_cuda}, which {than} the {gpu}")
    on_windows = log.says(_WINDOWS) and not log.says(_LINUX)
    if framework == "tensorflow" and on_windows and release_numbers(row.version) >= (2, 11):
        yield Fit(False, f"{name} has no GPU support on Windows, except in WSL2")
    cuda = _first(log, "cuda")
    if cuda and builds and age == "unknown":
        same = any(release_numbers(one)[:1] == release_numbers(cuda)[:1] for one in builds)
        yield Fit(same, for_cuda + ("" if same else f", and not for {cuda}"))


def _of_code(row: Release, name: str, for_cuda: str, gpu: LogGpu) -> Fit:
    """A CUDA release can build code for more GPUs than a framework does."""
    codes = [code for each in row.architectures if (code := parse_code(each)) is not None]
    if codes and fit(codes, gpu.capability) in ("too-old", "too-new"):
        return Fit(False, f"{name}, as pip installs it on Linux, has no code for the {gpu}")
    return Fit(True, f"{for_cuda}, which supports the {gpu}")


def misfits(log: Log) -> tuple[str, ...]:
    return tuple(fit.says for fit in fits(log) if not fit.fits)


def _first(log: Log, of: str) -> str:
    pattern = _PYTHON if of == "python" else _CUDA
    return next((match.groups["number"] or "" for match in log.find(pattern)), "")


def _named_release(log: Log) -> Release | None:
    """The newest release of the framework that the log names: 2.15.1 for 2.15."""
    for framework, packages in _PACKAGES:
        version = release_numbers(log.version_of(framework) or "")
        for package in packages if len(version) > 1 else ():
            for row in reversed(versions_of(package)):
                of_it = release_numbers(row.version)[: len(version)] == version
                if of_it and (row.cuda or package == "jaxlib"):
                    return row
    return None


def _builds(row: Release) -> tuple[str, ...]:
    """The CUDA releases that there are builds for, without the numbers of their patches."""
    release = torch_indexes.torch_release(row.package, row.version)
    tags = torch_indexes.indexes_of(release) if release is not None else ()
    known = tuple(torch_indexes.cuda_of(tag) for tag in tags)
    return known or ((".".join(row.cuda.split(".")[:2]),) if row.cuda else ())
