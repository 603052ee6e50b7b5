"""The facts of a machine that decide what fits it, from a snapshot or from options."""

from __future__ import annotations

import re

from whygpu.errors import Option, UsageError
from whygpu.model.derived import nvidia_gpu
from whygpu.model.driver import Driver, Gpu
from whygpu.model.machine_spec import PLATFORMS, MachineSpec, PlannedGpu, dotted
from whygpu.model.observed import Absent, Known, Observed, Unknown, transform
from whygpu.model.snapshot import Snapshot
from whygpu.model.system import System
from whygpu.model.target import Interpreter
from whygpu.tables import gpus
from whygpu.tables.architectures import parse_capability
from whygpu.tables.versions import release_numbers

_ALIASES = {
    "linux": "linux_x86_64",
    "windows": "win_amd64",
    "macos": "macosx_arm64",
}
_NO_DRIVER_GIVEN = Unknown("the driver of that machine was not given (--driver)")
_NO_GPU_GIVEN = Unknown("the GPU of that machine was not given (--gpu)")
_NEWER_THAN_ANY_CUDA = 60
"""CUDA releases have lower numbers, and drivers have had higher ones since 2005."""
_SYSTEMS = {"linux": "linux", "darwin": "macosx", "windows": "win"}


def from_snapshot(taken: Snapshot) -> MachineSpec:
    return MachineSpec(
        python=_python(taken.target.interpreter),
        platform=_platform(taken.system),
        glibc=_glibc(taken.system),
        driver=taken.driver.version,
        gpus=_gpus(taken.driver, nvidia_gpu(taken)),
        free_threaded=_free_threaded(taken.target.interpreter),
    )


def _python(interpreter: Observed[Interpreter]) -> Observed[str]:
    if isinstance(interpreter, Known) and interpreter.value.implementation != "cpython":
        name = interpreter.value.implementation
        return Unknown(
            f"the interpreter is {name}, but the table has only wheels for CPython (--python)"
        )
    return transform(interpreter, lambda known: known.version)


def _free_threaded(interpreter: Observed[Interpreter]) -> bool:
    return isinstance(interpreter, Known) and interpreter.value.free_threaded


def described(
    machine: MachineSpec,
    *,
    python: str | None = None,
    driver: str | None = None,
    gpu: str | None = None,
    glibc: str | None = None,
    platform: str | None = None,
) -> MachineSpec:
    """The machine with what the options say about it."""
    named = tuple(_named(name.strip()) for name in gpu.split(",")) if gpu is not None else ()
    if platform is not None:
        machine = _moved(machine, _platform_name(platform), "platform")
    elif any(each.kind == "jetson" or each.name in gpus.BESIDE_ARM for each in named):
        machine = _moved(machine, "linux_aarch64", "gpu")
    if python is not None:
        version = _version(python.removesuffix("t"), "python", "3.11, or 3.14t")
        machine = machine._replace(
            python=_given(version, "python"), free_threaded=python.endswith("t")
        )
    if glibc is not None:
        machine = machine._replace(glibc=_given(_version(glibc, "glibc", "2.31"), "glibc"))
    if named:
        machine = machine._replace(gpus=_given(named, "gpu"))
        if not isinstance(machine.driver, Known):
            machine = machine._replace(driver=_NO_DRIVER_GIVEN)
    if driver is not None:
        machine = machine._replace(driver=_given(_driver_version(driver), "driver"))
        if not isinstance(machine.gpus, Known):
            machine = machine._replace(gpus=_NO_GPU_GIVEN)
    return machine


def _moved(machine: MachineSpec, platform: str, option: str) -> MachineSpec:
    """Another system has another C library, driver and GPU, which other options may name."""
    here = machine.platform
    moved = machine._replace(platform=_given(platform, option))
    if isinstance(here, Known) and here.value == platform:
        return moved
    moved = moved._replace(glibc=Unknown("the C library of that machine was not given (--glibc)"))
    if platform.startswith("macosx"):
        nothing = Absent("macOS does not use NVIDIA GPUs")
        return moved._replace(driver=nothing, gpus=nothing)
    if isinstance(here, Known):
        return moved._replace(driver=_NO_DRIVER_GIVEN, gpus=_NO_GPU_GIVEN)
    return moved


def _given(value: object, option: str) -> Known:  # type: ignore[type-arg]
    return Known(value, f"--{option}")


def _version(text: str, option: str, example: str) -> str:
    if not re.fullmatch(r"\d+(\.\d+)*", text):
        raise UsageError(f"expected a version, such as {example}", option=option, value=text)
    return text


def _driver_version(text: str) -> str:
    version = _version(text, "driver", "535.54.03")
    if release_numbers(version) < (_NEWER_THAN_ANY_CUDA,):
        raise UsageError(
            "this is no version of a driver but looks like one of CUDA; nvidia-smi prints the "
            "driver after 'Driver Version', such as 535.54.03",
            option="driver",
            value=text,
        )
    return version


def _platform_name(text: str) -> str:
    name = text.lower().replace("-", "_")
    name = _ALIASES.get(name, name)
    if name not in PLATFORMS:
        raise UsageError(f"expected one of {', '.join(PLATFORMS)}", option="platform", value=text)
    return name


_OTHER_MAKERS = re.compile(
    r"(?i)\b(?:AMD|Radeon|RX ?[4-9]\d{2,3}|Instinct|MI ?\d{2,3}[AX]?|gfx\w+)\b"
    r"|(?P<intel>\b(?:Intel|Arc ?[AB]\d{3}|Iris|Ponte Vecchio)\b)"
)


def _named(text: str) -> PlannedGpu:
    """A GPU by its name, or by its compute capability."""
    capability = parse_capability(text)
    if capability is not None:
        return PlannedGpu("a GPU", capability, None)
    found = gpus.find(text)
    capabilities = dict.fromkeys(model.capability for model in found)
    if not found and (other := _OTHER_MAKERS.search(text)):
        maker = "Intel" if other["intel"] else "AMD"
        raise UsageError(
            f"this is a GPU of {maker}, and the table of releases is about those of NVIDIA; "
            "https://pytorch.org/get-started/locally/ has the command for PyTorch",
            option="gpu",
            value=text,
        )
    if not found:
        raise UsageError(
            "no such model on record; give its compute capability instead, such as ",
            Option("gpu", "8.6"),
            " (see https://developer.nvidia.com/cuda-gpus)",
            option="gpu",
            value=text,
        )
    if len(capabilities) > 1:
        names = ", ".join(f"{model.name} ({dotted(model.capability)})" for model in found)
        raise UsageError(f"this may be any of {names}; name one of them", option="gpu", value=text)
    name = found[0].name if len(found) == 1 else text
    return PlannedGpu(name, found[0].capability, found[0].kind)


def _platform(system: System) -> Observed[str]:
    name = _SYSTEMS.get(system.os)
    machine = system.cpu.architecture.lower()
    if name == "win":
        machine = {"x86_64": "amd64"}.get(machine, machine)
    tag = f"{name}_{machine}"
    if tag not in PLATFORMS:
        return Unknown(f"{system.os} on {machine} is not on record")
    return Known(tag, "the running system")


def _glibc(system: System) -> Observed[str]:
    libc = system.libc
    if not isinstance(libc, Known):
        return libc
    if libc.value.name != "glibc":
        return Absent(f"the C library is {libc.value.name} {libc.value.version}".rstrip())
    return Known(libc.value.version, libc.source)


def _gpus(driver: Driver, seen: Observed[str]) -> Observed[tuple[PlannedGpu, ...]]:
    listed = driver.gpus
    if isinstance(listed, Known) and listed.value:
        known = list[PlannedGpu]()
        for gpu in listed.value:
            planned = _planned(gpu)
            if isinstance(planned, Unknown):
                return planned
            known.append(planned)
        return Known(tuple(known), listed.source)
    if isinstance(seen, Known):
        return Unknown(
            f"there is {seen.value}, but only a working driver reports its model (--gpu)"
        )
    return seen


def _planned(gpu: Gpu) -> PlannedGpu | Unknown:
    models = gpus.find(gpu.name)
    kind = models[0].kind if models else None
    reported = gpu.compute_capability
    capability = parse_capability(reported.value) if isinstance(reported, Known) else None
    if capability is None and len({model.capability for model in models}) == 1:
        capability = models[0].capability
    if capability is None:
        return Unknown(f"the compute capability of {gpu.name} is not known (--gpu)")
    return PlannedGpu(gpu.name, capability, kind)
