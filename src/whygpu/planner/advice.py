"""What to do with a plan: the commands, what to know about them, and what to check afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from whygpu.model.observed import Known
from whygpu.planner.candidates import Candidate
from whygpu.planner.machine import MachineSpec
from whygpu.planner.plan import Answer, Plan, python_of
from whygpu.planner.wishes import BACKENDS
from whygpu.tables.cudnn_floors import cudnn_floor
from whygpu.tables.driver_branches import branch_of
from whygpu.tables.python_releases import OLD_PIP_UP_TO, python_release
from whygpu.tables.versions import release_numbers

PYTORCH_INDEX = "https://download.pytorch.org/whl/"


class Advice(NamedTuple):
    commands: tuple[str, ...]
    """Each installs the plan by itself: with pip, and with uv."""
    preparations: tuple[str, ...]
    """Commands that have to come first."""
    remedies: tuple[str, ...]
    """Commands that have to follow."""
    notes: tuple[str, ...]
    verify: str


def advice(answer: Answer, plan: Plan, today: str) -> Advice:
    wanted = requirements(plan)
    quoted = " ".join(f"'{item}'" for item in wanted)
    python = python_of(answer.machine)
    pip = f"python{python} -m pip install" if python else "python -m pip install"
    uv = f"uv venv --python {python} && uv pip install" if python else "uv pip install"
    conda = [command for item in plan.chosen if (command := _system_cuda(item))]
    remedies = [command for item in plan.chosen if (command := _search_remedy(item))]
    return Advice(
        commands=(f"{pip} {quoted}", f"{uv} {quoted}"),
        preparations=(*_newer_pip(python), *dict.fromkeys(conda)),
        remedies=tuple(remedies),
        notes=tuple(dict.fromkeys(_notes(answer, plan, today))),
        verify="whygpu check",
    )


def requirements(plan: Plan) -> tuple[str, ...]:
    """What the command asks for: the choices, and what their metadata fail to exclude."""
    pins = (requirement for requirement, _ in plan.solution.pins)
    return tuple(dict.fromkeys((*(item.requirement for item in plan.chosen), *pins)))


def _newer_pip(python: str | None) -> tuple[str, ...]:
    if python is None or release_numbers(python) > OLD_PIP_UP_TO:
        return ()
    return (f"python{python} -m pip install --upgrade 'pip<21'",)


def _system_cuda(candidate: Candidate) -> str:
    """Releases without an extra for CUDA find it on the machine, or in a conda environment."""
    if candidate.framework != "tensorflow" or candidate.extra:
        return ""
    cuda = ".".join(candidate.cuda.split(".")[:2])
    floor = cudnn_floor(candidate.version) or candidate.cudnn
    # Any later one of the same major release will do.
    cudnn = f" 'cudnn>={floor},<{int(floor.partition('.')[0]) + 1}'" if floor else ""
    return f"conda install -c conda-forge cudatoolkit={cuda}{cudnn}"


def _search_remedy(candidate: Candidate) -> str:
    if not candidate.unsearched:
        return ""
    folders = dict.fromkeys(_folder(library) for library in candidate.unsearched)
    paths = ":".join(f"$NVIDIA/{folder}/lib" for folder in folders)
    find = "NVIDIA=$(python -c 'import nvidia; print(list(nvidia.__path__)[0])')"
    return f'{find}; export LD_LIBRARY_PATH="{paths}:$LD_LIBRARY_PATH"'


def _folder(library: str) -> str:
    """The wheels' folder of a library; what is a folder already stays one."""
    plain = library.removeprefix("lib").partition(".so")[0]
    return {"cublasLt": "cublas", "cudart": "cuda_runtime", "cupti": "cuda_cupti"}.get(plain, plain)


def _notes(answer: Answer, plan: Plan, today: str) -> Iterator[str]:
    for verdict in plan.verdicts:
        name = f"{verdict.candidate.package} {verdict.candidate.version}"
        yield from (f"{name} {note}" for note in (*verdict.notes, *verdict.unchecked))
    yield from (f"{requirement} because {reason}" for requirement, reason in plan.solution.pins)
    for candidate in plan.chosen:
        yield from _about(candidate)
    yield from _keras_backend([candidate.framework for candidate in plan.chosen])
    yield from _ends_of_life(answer.machine, today)


def _about(candidate: Candidate) -> Iterator[str]:
    name = f"{candidate.package} {candidate.version}"
    if candidate.unsearched:
        yield (
            f"{name} does not search the folder of its own {', '.join(candidate.unsearched)}: "
            "set LD_LIBRARY_PATH as shown, in every shell that starts it"
        )
    if _system_cuda(candidate):
        yield (
            f"{name} brings no CUDA libraries: CUDA {candidate.cuda} and cuDNN "
            f"{cudnn_floor(candidate.version) or candidate.cudnn} have to be on the machine, "
            "from conda as shown or from NVIDIA's installers"
        )
    if candidate.framework in ("onnxruntime", "cupy"):
        cudnn = f" and cuDNN {candidate.cudnn}" if candidate.cudnn else ""
        wanted = f"CUDA {candidate.cuda}{cudnn}"
        yield f"{name} brings no CUDA libraries: those of {wanted} have to be on the machine"
    if candidate.framework == "torch":
        yield (
            f"{name} from the package index is built for CUDA {candidate.cuda}; builds for other "
            f"CUDA releases are on {PYTORCH_INDEX} (not in this table)"
        )


def _keras_backend(frameworks: list[str]) -> Iterator[str]:
    backends = [name for name in frameworks if name in BACKENDS]
    if "keras" in frameworks and "tensorflow" not in backends:
        yield f"set KERAS_BACKEND={backends[0]}: without it, Keras looks for TensorFlow"


def _ends_of_life(machine: MachineSpec, today: str) -> Iterator[str]:
    month = today[:7]
    python = python_of(machine)
    release = python_release(python) if python else None
    if release is not None and release.end_of_life < month:
        yield f"Python {release.version} gets no more security fixes since {release.end_of_life}"
    if isinstance(machine.driver, Known):
        branch = branch_of(machine.driver.value)
        if branch is not None and branch.end_of_life and branch.end_of_life < month:
            yield (
                f"driver branch {release_numbers(machine.driver.value)[0]} is at the end of its "
                f"life since {branch.end_of_life}"
            )
