"""How to carry out a plan: the commands, notes on them, and a check afterwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from whygpu.model.install_plan import Advice, Candidate, Plan, PlanAnswer
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Known
from whygpu.model.project_commands import note_on_manager
from whygpu.model.remedy import (
    PYTHON,
    Action,
    Argument,
    Install,
    Steps,
    a_name,
    a_number,
    a_requirement,
    shell_script,
)
from whygpu.model.target import PLAIN_PIP, Installer, Manager
from whygpu.planner.wishes import BACKENDS
from whygpu.tables.conda_toolkits import conda_channel
from whygpu.tables.cudnn_floors import cudnn_floor
from whygpu.tables.driver_branches import branch_of
from whygpu.tables.metal_builds import metal_build
from whygpu.tables.python_releases import OLD_PIP_UP_TO, UV_SINCE, python_release
from whygpu.tables.torch_indexes import INDEX_ROOT
from whygpu.tables.versions import release_numbers


def advice(answer: PlanAnswer, plan: Plan, today: str, target: Installer | None = None) -> Advice:
    """`target` is the environment for the plan; without it, any environment with that Python."""
    python = answer.machine.python_build
    with_cuda = next((item for item in plan.chosen if _conda_packages(item)), None)
    in_conda = _in_conda(with_cuda, None if target else python) if with_cuda else ()
    installer = target or (PLAIN_PIP if in_conda else _any_with(python))
    manager = installer.manager.value if isinstance(installer.manager, Known) else None
    is_managed = manager is not None and manager.certain
    return Advice(
        installer=installer,
        preparations=_given([*in_conda, _newer_pip(python)]),
        # In a project, a second environment is no alternative to the one that its tool manages,
        # nor is one without the CUDA libraries from conda.
        installs=_given(
            [_with_pip(plan), None if is_managed or in_conda else _with_uv(plan, python)]
        ),
        remedies=_given([_search_remedy(item) for item in plan.chosen]),
        notes=tuple(dict.fromkeys((*_notes(answer, plan, today), *_on_manager(plan, manager)))),
        shell="windows" if answer.machine.platform_name == "win_amd64" else "posix",
    )


def requirements(plan: Plan) -> tuple[str, ...]:
    """The requirements in the command: the choices, and pins that their metadata lack."""
    pins = (requirement for requirement, _ in plan.solution.pins)
    chosen = (requirement for item in plan.chosen for requirement in item.requirements)
    return tuple(dict.fromkeys((*chosen, *pins)))


def _given(actions: Sequence[Action | None]) -> tuple[Action, ...]:
    return tuple(dict.fromkeys(action for action in actions if action is not None))


def _any_with(python: str | None) -> Installer:
    return PLAIN_PIP._replace(python=f"python{python}") if python else PLAIN_PIP


def _with_pip(plan: Plan) -> Action:
    """An index of PyTorch has little besides PyTorch, so everything else is a second step.

    That step leaves PyTorch as it is, because the installed build satisfies its requirement.
    """
    wanted = requirements(plan)
    special = [item for item in plan.chosen if item.torch_index]
    if not special:
        return Install(wanted)
    steps = [Install((item.requirement,), f"{INDEX_ROOT}{item.torch_index}") for item in special]
    if len(wanted) == len(steps):
        return steps[0]
    return Steps((*steps, Install(wanted)))


def _with_uv(plan: Plan, python: str | None) -> Action | None:
    """Install into a new environment that uv creates with that Python."""
    if python is not None and release_numbers(python) < UV_SINCE:
        return None
    words = [word for item in requirements(plan) for word in (" ", a_requirement(item))]
    for item in plan.chosen:
        if item.torch_index:
            words += [" --torch-backend=", a_name(item.torch_index)]
    if python is None:
        return shell_script("uv pip install", *words)
    return shell_script("uv venv --python ", a_name(python), " && uv pip install", *words)


def _newer_pip(python: str | None) -> Action | None:
    if python is None or release_numbers(python) > OLD_PIP_UP_TO:
        return None
    return Install(("pip<21",), options=("upgrade",))


def _needs_system_cuda(candidate: Candidate) -> bool:
    """Releases without an extra for CUDA use the machine's CUDA or that of a conda environment."""
    return candidate.framework == "tensorflow" and not candidate.extra and candidate.uses == "cuda"


def _in_conda(candidate: Candidate, python: str | None) -> tuple[Action, ...]:
    """Install the CUDA libraries with conda: in a new environment with that Python, or in the
    active one. Only a Python of the same environment finds them there.
    """
    packages = _conda_packages(candidate)
    if python is None:
        return (shell_script("conda install", *packages),)
    name = a_name(f"{candidate.framework}-{'.'.join(candidate.version.split('.')[:2])}")
    create = ("conda create -n ", name, " python=", a_number(python))
    return (shell_script(*create, *packages), shell_script("conda activate ", name))


def _conda_packages(candidate: Candidate) -> tuple[str | Argument, ...]:
    """The options and packages of conda for the CUDA release; empty if conda does not have it."""
    channel = conda_channel(candidate.cuda)
    if channel is None or not _needs_system_cuda(candidate):
        return ()
    cuda = ".".join(candidate.cuda.split(".")[:2])
    floor = cudnn_floor(candidate.version) or candidate.cudnn
    # Any later release with the same major number works.
    limit = f"cudnn>={floor},<{int(floor.partition('.')[0]) + 1}" if floor else ""
    cudnn = (" ", a_requirement(limit)) if limit else ()
    return (" -c ", a_name(channel), " cudatoolkit=", a_number(cuda), *cudnn)


def _search_remedy(candidate: Candidate) -> Action | None:
    if not candidate.unsearched:
        return None
    folders = dict.fromkeys(_folder(library) for library in candidate.unsearched)
    first, *others = ((a_name(folder), "/lib") for folder in folders)
    paths = [*first, *(part for other in others for part in (":$NVIDIA/", *other))]
    return shell_script(
        "NVIDIA=$(",
        PYTHON,
        " -c 'import nvidia; print(list(nvidia.__path__)[0])'); export LD_LIBRARY_PATH=\"$NVIDIA/",
        *paths,
        '${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"',
    )


def _folder(library: str) -> str:
    """The folder of a library in the wheels; a folder is returned as it is."""
    plain = library.removeprefix("lib").partition(".so")[0]
    return {"cublasLt": "cublas", "cudart": "cuda_runtime", "cupti": "cuda_cupti"}.get(plain, plain)


def _notes(answer: PlanAnswer, plan: Plan, today: str) -> Iterator[str]:
    for verdict in plan.verdicts:
        name = f"{verdict.candidate.package} {verdict.candidate.version}"
        yield from (f"{name} {note}" for note in (*verdict.notes, *verdict.unchecked))
    yield from (f"{requirement} because {reason}" for requirement, reason in plan.solution.pins)
    for candidate in plan.chosen:
        yield from _about(candidate)
        metal = metal_build(candidate.package, candidate.version, answer.machine.platform_name)
        if metal is not None:
            yield f"{candidate.package} {candidate.version} {metal.limit}"
    if answer.machine.platform_name == "win_amd64":
        yield "Windows PowerShell 5 does not know &&: run what it joins as separate commands"
    yield from _keras_backend([candidate.framework for candidate in plan.chosen])
    yield from _ends_of_life(answer.machine, today)


def _about(candidate: Candidate) -> Iterator[str]:
    name = f"{candidate.package} {candidate.version}"
    if candidate.unsearched:
        yield (
            f"{name} does not search the folder of its own {', '.join(candidate.unsearched)}: "
            "set LD_LIBRARY_PATH as shown, in every shell that starts it"
        )
    if _needs_system_cuda(candidate):
        conda = "from conda as shown or " if _conda_packages(candidate) else ""
        yield (
            f"{name} does not include the CUDA libraries: CUDA {candidate.cuda} and cuDNN "
            f"{cudnn_floor(candidate.version) or candidate.cudnn} must be on the machine, "
            f"{conda}from NVIDIA's installers"
        )
    if candidate.framework in ("onnxruntime", "cupy"):
        cudnn = f" and cuDNN {candidate.cudnn}" if candidate.cudnn else ""
        wanted = f"CUDA {candidate.cuda}{cudnn}"
        yield f"{name} does not include the CUDA libraries: {wanted} must be on the machine"
    if candidate.torch_index:
        index = f"{INDEX_ROOT}{candidate.torch_index}"
        yield (
            f"{name} is built for CUDA {candidate.cuda} on {index}: without that index, pip "
            "installs another build"
        )


def _on_manager(plan: Plan, manager: Manager | None) -> Iterator[str]:
    if manager is not None:
        yield note_on_manager(Install(requirements(plan)), manager).strip().removesuffix(".")


def _keras_backend(frameworks: list[str]) -> Iterator[str]:
    backends = [name for name in frameworks if name in BACKENDS]
    if "keras" in frameworks and "tensorflow" not in backends:
        yield f"set KERAS_BACKEND={backends[0]}: without it, Keras uses TensorFlow"


def _ends_of_life(machine: MachineSpec, today: str) -> Iterator[str]:
    month = today[:7]
    python = machine.python_minor
    release = python_release(python) if python else None
    if release is not None and release.end_of_life < month:
        yield f"Python {release.version} has had no security fixes since {release.end_of_life}"
    if isinstance(machine.driver, Known):
        branch = branch_of(machine.driver.value)
        if branch is not None and branch.end_of_life and branch.end_of_life < month:
            yield (
                f"driver branch {release_numbers(machine.driver.value)[0]} reached its end of life "
                f"in {branch.end_of_life}"
            )
