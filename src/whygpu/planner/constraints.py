"""Whether a release fits a machine: a chain of constraints with reasons, in a fixed order."""

from __future__ import annotations

from collections.abc import Iterator

from whygpu.model.install_plan import Candidate, FitCheck, no_wheel_for
from whygpu.model.machine_spec import PLATFORMS, MachineSpec, PlannedGpu, dotted
from whygpu.model.observed import Absent, Known, Observed, Unknown
from whygpu.model.release import Release
from whygpu.planner.wishes import contains
from whygpu.tables.architectures import TEGRA, Fit, fit, parse_code
from whygpu.tables.cuda_architectures import ROWS as CUDA_ROWS
from whygpu.tables.cuda_architectures import built_for
from whygpu.tables.cudnn_support import newest_gpu
from whygpu.tables.driver_branches import (
    DriverBranch,
    LastBranch,
    branch_of,
    first_branch_for,
    is_after,
    last_branch_for,
)
from whygpu.tables.driver_floors import DriverFloor
from whygpu.tables.metal_builds import metal_build
from whygpu.tables.platform_builds import build_without_cuda
from whygpu.tables.reported_failures import reported_failure
from whygpu.tables.versions import release_numbers
from whygpu.tables.windows_driver_floors import floors_for

_COMPILING = ("cupy", "jax")
"""Frameworks whose packages contain few kernels."""


def checks(candidate: Candidate, machine: MachineSpec) -> Iterator[FitCheck]:
    """The check of the release alone against every constraint."""
    yield _python(candidate, machine)
    yield _platform(candidate, machine)
    if machine.platform_name.startswith("linux"):
        yield _glibc(candidate, machine)
    if not candidate.has_gpu_code:
        return
    yield _build(candidate)
    if candidate.remark:
        yield FitCheck("build", "note", candidate.remark)
    if candidate.unread:
        # Neither the driver nor the GPU that it needs is known.
        return
    if candidate.uses == "metal":
        yield from _metal(candidate, machine)
    else:
        yield _driver(candidate, machine)
        yield _architecture(candidate, machine)
        yield from _reports(candidate, machine)
        yield _defect(candidate)


def usable(row: Release, machine: MachineSpec) -> bool:
    """Whether a package has a wheel for the machine. Unknown facts exclude nothing."""
    return wheel_problem(row, machine) is None


def wheel_problem(row: Release, machine: MachineSpec) -> str | None:
    """Why a package has no wheel for the machine, as the rest of a sentence; None if it has one."""
    problem = _python_problem(row, machine)
    if problem is not None:
        return problem
    if isinstance(machine.platform, Known) and not row.has_wheel_for(machine.platform.value):
        return f"has no wheel for {PLATFORMS[machine.platform.value]}"
    return _glibc_problem(row, machine)


def _python(candidate: Candidate, machine: MachineSpec) -> FitCheck:
    if not isinstance(machine.python, Known):
        return FitCheck("python", "unchecked", _missing("the Python version", machine.python))
    for part in candidate.parts:
        problem = _python_problem(part, machine)
        if problem is not None:
            return FitCheck("python", "breaks", f"{_whose(candidate, part)}{problem}")
    return FitCheck("python", "holds", f"has wheels for Python {machine.python_build}")


def _python_problem(row: Release, machine: MachineSpec) -> str | None:
    python = machine.python
    if not isinstance(python, Known):
        return None
    built_for_it = row.pythons_with_wheels(free_threaded=machine.free_threaded)
    if row.pythons and machine.python_build not in built_for_it:
        return no_wheel_for(machine, built_for_it)
    # 3.11 alone means the newest of its patch releases.
    full = python.value if python.value.count(".") > 1 else f"{python.value}.99"
    if not contains(row.requires_python, full):
        return f"needs Python {row.requires_python}, you have {python.value}"
    return None


def _platform(candidate: Candidate, machine: MachineSpec) -> FitCheck:
    if not isinstance(machine.platform, Known):
        return FitCheck("platform", "unchecked", _missing("the platform", machine.platform))
    tag = machine.platform.value
    name = PLATFORMS[tag]
    for part in candidate.parts:
        if not part.has_wheel_for(tag):
            return FitCheck(
                "platform", "breaks", f"{_whose(candidate, part)}has no wheel for {name}"
            )
    row = build_without_cuda(candidate.package, candidate.version, tag)
    if row is not None and not candidate.torch_index:
        return FitCheck("platform", "breaks", f"has no GPU support on {name}: {row.instead}")
    return FitCheck("platform", "holds", f"has wheels for {name}")


def _glibc(candidate: Candidate, machine: MachineSpec) -> FitCheck:
    platform = machine.platform_name
    floors = [floor for part in candidate.parts if (floor := part.glibc_for(platform))]
    if not floors:
        return FitCheck("glibc", "holds", "does not need a specific glibc")
    if isinstance(machine.glibc, Unknown):
        return FitCheck("glibc", "unchecked", _missing("glibc", machine.glibc))
    for part in candidate.parts:
        problem = _glibc_problem(part, machine)
        if problem is not None:
            return FitCheck("glibc", "breaks", f"{_whose(candidate, part)}{problem}")
    return FitCheck("glibc", "holds", f"needs glibc {max(floors, key=release_numbers)} or newer")


def _glibc_problem(row: Release, machine: MachineSpec) -> str | None:
    floor = row.glibc_for(machine.platform_name)
    if not floor or isinstance(machine.glibc, Unknown):
        return None
    if isinstance(machine.glibc, Absent):
        return f"needs glibc, and {machine.glibc.source}"
    if release_numbers(machine.glibc.value) < release_numbers(floor):
        return f"needs glibc {floor} or newer, you have {machine.glibc.value}"
    return None


def _build(candidate: Candidate) -> FitCheck:
    if candidate.no_build:
        return FitCheck("build", "breaks", candidate.no_build)
    if candidate.unread:
        reason = f"was not checked against the driver and the GPU: {candidate.unread}"
        return FitCheck("build", "unchecked", reason)
    if candidate.doubt:
        return FitCheck("build", "unchecked", candidate.doubt)
    if candidate.uses == "metal":
        return FitCheck("build", "holds", "is built for Metal, the GPU interface of macOS")
    cudnn = f" and cuDNN {candidate.cudnn}" if candidate.cudnn else ""
    return FitCheck("build", "holds", f"is built for CUDA {candidate.cuda}{cudnn}")


def _metal(candidate: Candidate, machine: MachineSpec) -> Iterator[FitCheck]:
    """The GPU of a Mac needs no driver beside macOS, whose version is not known here."""
    gpus = _gpus(machine)
    if gpus:
        reason = f"cannot use {gpus[0]} on macOS: macOS has no driver for it"
        yield FitCheck("architecture", "breaks", reason)
        return
    platform = machine.platform_name
    row = metal_build(candidate.package, candidate.version, platform)
    if row is None:
        return
    macos = max((row.macos, _oldest_macos(candidate.parts[0], platform)), key=release_numbers)
    yield FitCheck("build", "note", f"needs macOS {macos} or newer")
    if platform == "macosx_x86_64":
        reason = "uses the GPU of an Intel Mac only if it is an AMD GPU, which was not checked"
        yield FitCheck("architecture", "unchecked", reason)


def _oldest_macos(row: Release, platform: str) -> str:
    """The oldest macOS that its wheels for a platform are tagged for: 14.0."""
    machine = platform.partition("_")[2]
    tags = [tag.split("_") for tag in row.platforms if tag.startswith("macosx_")]
    floors = [(int(tag[1]), int(tag[2])) for tag in tags if "_".join(tag[3:]) == machine]
    return dotted(min(floors)) if floors else "0"


def _driver(candidate: Candidate, machine: MachineSpec) -> FitCheck:
    floors = floors_for(machine.platform_name, candidate.cuda)
    if not floors:
        known = f"no driver floor is on record for CUDA {candidate.cuda}"
        return FitCheck("driver", "unchecked", known)
    if isinstance(machine.driver, Absent):
        reason = f"needs driver {floors[-1].driver} or newer, and there is none here"
        return FitCheck("driver", "unchecked", reason)
    if isinstance(machine.driver, Unknown):
        reason = f"needs driver {floors[-1].driver} or newer: {machine.driver.reason}"
        return FitCheck("driver", "unchecked", reason)
    return _against_floors(candidate, machine, machine.driver.value, floors)


def _against_floors(
    candidate: Candidate, machine: MachineSpec, driver: str, floors: tuple[DriverFloor, ...]
) -> FitCheck:
    mine = release_numbers(driver)
    lowest, highest = floors[0].driver, floors[-1].driver
    if mine < release_numbers(lowest):
        return FitCheck("driver", "breaks", f"needs driver {lowest} or newer, you have {driver}")
    if mine < release_numbers(highest):
        reason = (
            f"needs driver {lowest} or {highest}, depending on its exact CUDA; you have {driver}"
        )
        return FitCheck("driver", "unchecked", reason)
    further = _gpu_limits(machine, driver) or _ptx_floor(candidate, machine, driver)
    if further is not None:
        return FitCheck("driver", "breaks", further)
    return FitCheck("driver", "holds", f"needs driver {lowest} or newer, you have {driver}")


def is_driver_too_new(machine: MachineSpec) -> bool:
    """Whether the driver is of a branch that no longer supports a GPU of the machine."""
    driver = machine.driver.value if isinstance(machine.driver, Known) else None
    return driver is not None and any(_dropped(gpu, driver) for gpu in _gpus(machine))


def _dropped(gpu: PlannedGpu, driver: str) -> LastBranch | None:
    """The last driver branch for a GPU, if the driver is of a later one."""
    last = last_branch_for(gpu.capability) if gpu.capability not in TEGRA else None
    return last if last is not None and is_after(driver, last.branch) else None


def _gpu_limits(machine: MachineSpec, driver: str) -> str | None:
    """A driver that is older than the GPU does not support it, and a newer one may no longer."""
    for gpu in _gpus(machine):
        last = _dropped(gpu, driver)
        if last is not None:
            return (
                f"needs a driver of branch {last.branch} or older for {gpu}, because later ones "
                f"do not support this GPU; you have {driver}"
            )
        first = first_branch_knowing(gpu.capability)
        if first is not None and release_numbers(driver)[0] < first.branch:
            return f"needs driver {first.branch} or newer for {gpu}, you have {driver}"
    return None


def first_branch_knowing(gpu: tuple[int, int]) -> DriverBranch | None:
    """The first driver branch for a GPU: that of the first CUDA release that supports it."""
    if gpu in TEGRA:
        return None
    first = next((row.first for row in CUDA_ROWS if row.newest >= gpu), None)
    return first_branch_for(first) if first is not None else None


def _ptx_floor(candidate: Candidate, machine: MachineSpec, driver: str) -> str | None:
    """Minor-version compatibility of CUDA does not include PTX: an older driver refuses it."""
    compiled = [gpu for gpu in _gpus(machine) if _fit(candidate, gpu) == "compiled"]
    mine, first = branch_of(driver), first_branch_for(release_numbers(candidate.cuda)[:2])
    if not compiled or mine is None or first is None or mine.cuda >= first.cuda:
        return None
    return (
        f"needs driver {first.branch} or newer to compile its PTX (CUDA {dotted(first.cuda)}) for "
        f"{compiled[0]}, you have {driver}"
    )


def _architecture(candidate: Candidate, machine: MachineSpec) -> FitCheck:
    if not isinstance(machine.gpus, Known):
        return FitCheck("architecture", "unchecked", _missing("the GPU", machine.gpus))
    judged = [_on_gpu(candidate, gpu) for gpu in machine.gpus.value]
    for outcome in ("breaks", "unchecked", "note"):
        for step in judged:
            if step.outcome == outcome:
                return step
    return judged[0]


def _on_gpu(candidate: Candidate, gpu: PlannedGpu) -> FitCheck:
    if not candidate.architectures:
        return _by_cuda(candidate, gpu)
    has = _codes(candidate.architectures)
    result = _fit(candidate, gpu)
    if result == "binary":
        return FitCheck("architecture", "holds", f"has machine code for {gpu}: {has}")
    if result == "compiled":
        newest = newest_gpu(candidate.cudnn) if candidate.framework != "jax" else None
        if newest is not None and gpu.capability[0] > newest[0]:
            text = (
                f"has {has}, which {gpu} may compile, but its cuDNN {candidate.cudnn} supports "
                f"GPUs up to {dotted(newest)}"
            )
            return FitCheck("architecture", "unchecked", text)
        if candidate.framework == "jax":
            return _compiled_by_jax(candidate, gpu, has)
        text = f"has {has}: on {gpu} every kernel is compiled at first use; expect minutes"
        return FitCheck("architecture", "note", text)
    if result == "undocumented":
        text = f"has {has}: NVIDIA does not promise that this runs on {gpu}"
        return FitCheck("architecture", "unchecked", text)
    age = "older than all of it" if result == "too-old" else "too new for all of it"
    return FitCheck("architecture", "breaks", f"has {has}: {gpu} is {age}")


def _compiled_by_jax(candidate: Candidate, gpu: PlannedGpu, has: str) -> FitCheck:
    """JAX compiles programs itself, for the GPUs that its compiler knew when it was built."""
    known = built_for(candidate.cuda)
    if known is None or gpu.capability > known.newest:
        upto = f" up to {dotted(known.newest)}" if known is not None else ""
        text = (
            f"has {has}, which {gpu} may compile, but its own compiler is as old as CUDA "
            f"{candidate.cuda}, which knows GPUs{upto}"
        )
        return FitCheck("architecture", "unchecked", text)
    text = f"has {has}: on {gpu} its few own kernels are compiled at their first use"
    return FitCheck("architecture", "note", text)


def _by_cuda(candidate: Candidate, gpu: PlannedGpu) -> FitCheck:
    """If the binaries were not read, the CUDA release at least shows what they cannot contain."""
    row = built_for(candidate.cuda)
    if row is None:
        reason = "its GPU code is not on record"
        return FitCheck("architecture", "unchecked", reason)
    if gpu.capability < row.oldest:
        oldest = dotted(row.oldest)
        reason = f"is built for CUDA {candidate.cuda}, which needs {oldest} and excludes {gpu}"
        return FitCheck("architecture", "breaks", reason)
    if gpu.capability > row.newest:
        reason = (
            f"is built for CUDA {candidate.cuda}, which supports up to {dotted(row.newest)}: "
            f"whether it has PTX for {gpu} is not on record"
        )
        return FitCheck("architecture", "unchecked", reason)
    supported = f"is built for CUDA {candidate.cuda}, which supports {gpu}"
    if candidate.framework in _COMPILING:
        reason = f"{supported}; it compiles most kernels for the GPU in use"
        return FitCheck("architecture", "note", reason)
    reason = f"{supported}, but for which GPUs its own code is built is not on record"
    return FitCheck("architecture", "unchecked", reason)


def is_too_old(candidate: Candidate, gpu: PlannedGpu) -> bool:
    """Whether a release lacks code for a GPU because the GPU is too old for it."""
    if candidate.architectures:
        return _fit(candidate, gpu) == "too-old"
    row = built_for(candidate.cuda)
    return row is not None and gpu.capability < row.oldest


def _fit(candidate: Candidate, gpu: PlannedGpu) -> Fit:
    codes = [code for name in candidate.architectures if (code := parse_code(name)) is not None]
    return fit(codes, gpu.capability)


def _codes(names: tuple[str, ...]) -> str:
    """A short description of the GPU code: sm_60 to sm_90 and PTX for 9.0."""
    codes = sorted(
        (code.capability, code.binary, name)
        for name in names
        if (code := parse_code(name)) is not None
    )
    binaries = [name for _, binary, name in codes if binary]
    ptx = [dotted(capability) for capability, binary, _ in codes if not binary]
    parts = []
    if binaries:
        parts.append(binaries[0] if len(binaries) == 1 else f"{binaries[0]} to {binaries[-1]}")
    if ptx:
        parts.append(f"PTX for {' and '.join(ptx)}")
    return " and ".join(parts)


def _reports(candidate: Candidate, machine: MachineSpec) -> Iterator[FitCheck]:
    """Failures that users reported although the build has code for the GPU."""
    for gpu in _gpus(machine):
        row = reported_failure(candidate.framework, candidate.version, gpu.capability, gpu.kind)
        if row is not None:
            verb = "is reported" if row.is_certain else "is likely"
            reason = f"{verb} not to work on {gpu}: {row.symptom}; {row.instead}; {row.sources[0]}"
            yield FitCheck("reports", "breaks" if row.is_certain else "unchecked", reason)
            return
    if isinstance(machine.gpus, Known):
        yield FitCheck("reports", "holds", "has no reported failure on record for this GPU")


def _defect(candidate: Candidate) -> FitCheck:
    if not candidate.unsearched:
        return FitCheck("defect", "holds", "has no defect on record")
    libraries = ", ".join(candidate.unsearched)
    reason = f"does not search the folder of its own {libraries}, so it finds no GPU as installed"
    return FitCheck("defect", "breaks", reason)


def _gpus(machine: MachineSpec) -> tuple[PlannedGpu, ...]:
    return machine.gpus.value if isinstance(machine.gpus, Known) else ()


def _missing(what: str, fact: Observed[object]) -> str:
    if isinstance(fact, Absent):
        return f"was not checked against {what}: none was found ({fact.source})"
    reason = fact.reason if isinstance(fact, Unknown) else ""
    return f"was not checked against {what}: {reason}"


def _whose(candidate: Candidate, part: Release) -> str:
    return "" if part.package == candidate.package else f"its {part.package} "
