"""What an image gives to a program: its Dockerfile, with the requirement files that it installs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from whygpu.linter.gpu_signs import DEFAULT_RUNTIME
from whygpu.linter.image_installs import Built, ImageInstalls, built_stages, contexts
from whygpu.linter.project_files import ProjectFiles, kind_of
from whygpu.linter.started_script import needs_gpu, program_of
from whygpu.model.deployment import (
    BaseImage,
    CopiedFile,
    OpenQuestion,
    Reason,
    Setup,
    ShellCommand,
    StartedProgram,
    VariableSetting,
)
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.observed import Known, Unknown
from whygpu.model.requirement_file import (
    FileLine,
    PinnedRequirement,
    RequirementsFile,
    RequirementVerdict,
)
from whygpu.readers.deployment.dockerfile import Dockerfile, Stage, read
from whygpu.readers.deployment.package_installs import (
    PackageInstall,
    system_packages,
)
from whygpu.tables.base_images import TOOL_IMAGES, base_image, mostly_for_gpus

_OWN_CUDA = re.compile(
    r"cuda(?:-|$)|libcublas|cudatoolkit|nvidia-(?:cuda|cublas|pyindex)|cuda_\d|tensorrt"
    r"|cuda-repo|cuda-keyring"
)
_OWN_CUDNN = re.compile(r"(?:lib)?cudnn|nvidia-cudnn")
_PYTHON_WORD = re.compile(
    r"\A(?:.*/)?(?:python|pip)(\d\.\d+)(?:-(?:dev|distutils|venv|full|minimal))?"
)
_OTHER_PYTHON = re.compile(
    r"deadsnakes|pyenv|conda|mamba|uv python|virtualenv -p|\bpoetry\b|python\.org/ftp|Python-\d"
)
_SYSTEM_PYTHON = frozenset(
    {"python3", "python3-pip", "python3-dev", "python3-full", "python3-venv"}
)
_NO_GPUS = ("none", "void", "")
_CPU_NAME = re.compile(r"cpu(?![a-z])", re.IGNORECASE)
_CPU_WORD = re.compile(r"(?:^|[._-])cpu(?:[._-]|$)", re.IGNORECASE)
_OF_PROJECTS = frozenset({".git", "README.md", "README.rst", "LICENSE", "pyproject.toml"})
"""What the top folder of a project has."""
CPU_COMMENT = re.compile(
    r"cpu[- ]?(?:only|version|build|wheel|torch|support|test|mode)|only (?:the )?cpu|on cpu"
    r"|no gpu|without (?:an? )?gpu",
    re.IGNORECASE,
)
ONLY_A_NAME = "only a name says so"
_PYTORCH_IMAGE = re.compile(r"(?:docker\.io/)?pytorch/pytorch(?::|@|$)")
_GPU_NAME = re.compile(r"(?:^|[._/-])(?:gpu|cuda\d*|nvidia)(?:[._/-]|$)", re.IGNORECASE)
_GPU_IMAGE = re.compile(
    r"gpu(?::.*)?|[^:]{0,200}[._-](?:gpu|cuda\d{0,3})(?:[._-][^:]*)?(?::.*)?|[^:]{0,200}:(?:.{0,100}[._-])?(?:gpu|cu(?:da)?[\d.]*)(?:[._-].*)?",
    re.IGNORECASE,
)
"""quizbowl-gpu:1, app-cuda-blackwell, ray:2.46-py39-gpu, server:cuda12, app:gpu-latest. A name that
begins with gpu, as that of gpu-benchmarks, says less."""

Judge = Callable[[RequirementsFile, MachineSpec], tuple[RequirementVerdict, ...]]
"""The planner's judgement of requirements. This package may not import it, so callers pass it."""


def image_setup(
    dockerfile: Dockerfile,
    files: ProjectFiles,
    judge: Judge,
    *,
    context: str | None = None,
    target: str = "",
) -> Setup | None:
    """The image that a Dockerfile builds; None if it has no stage."""
    last = dockerfile.stage(target) if target else None
    last = last or (dockerfile.stages[-1] if dockerfile.stages else None)
    if last is None:
        return None
    built = built_stages(dockerfile, last)
    variables = tuple(setting for stage in built.stages for setting in stage.variables)
    installs = ImageInstalls(dockerfile, built, files, context)
    commands = tuple(installs.commands)
    python = _python(built.base, installs.all, commands)
    requirements = tuple(installs.requirements)
    program = _program(dockerfile, built, files, context)
    answer = _judged(dockerfile.path, requirements, python, judge)
    return Setup(
        kind="image",
        name=last.name,
        place=last.place,
        for_gpu=_unless_for_cpu(_for_gpu(dockerfile, built, variables, program), dockerfile, files),
        for_cpu=tuple(_for_cpu(dockerfile, last, files)),
        base=built.base,
        has_own_cuda=_has_own(_OWN_CUDA, commands, requirements) or _copies_cuda(built),
        has_own_cudnn=_has_own(_OWN_CUDNN, commands, requirements),
        python=python,
        requirements=requirements,
        verdicts=answer,
        variables=variables,
        commands=commands,
        copies=tuple(
            CopiedFile(source, copy.target, copy.place)
            for stage in built.stages
            for copy in stage.copies
            for source in copy.sources
        ),
        program=program,
        open_questions=tuple(_open_questions(built, installs.unknown)),
        arguments=dockerfile.arguments,
    )


def _open_questions(built: Built, not_followed: Sequence[str]) -> Iterator[OpenQuestion]:
    yield from (OpenQuestion("packages", reason) for reason in not_followed)
    base = built.base
    if base is None:
        yield OpenQuestion("packages", "its base image is not known")
    elif not (base.is_plain or base.cuda or base.framework):
        yield OpenQuestion("packages", f"what {base.reference} contains is not known")


def built_image(
    path: str,
    context: str,
    target: str,
    files: ProjectFiles,
    judge: Judge,
    arguments: Mapping[str, str],
) -> Setup | None:
    """`arguments` are those that the build gets."""
    path = os.path.normpath(path)
    text = files.read(path)
    if text is None:
        return None
    dockerfile = read(path, text, arguments)
    return image_setup(dockerfile, files, judge, context=context, target=target)


def published_image(reference: str, place: FileLine) -> Setup:
    """An image that is only named."""
    base = base_image(reference, place)
    own_name = base.reference.rpartition("/")[2]
    doubt = _doubt_about(base)
    if base.uses_gpu is None:
        named = _GPU_IMAGE.fullmatch(own_name) is not None and not _CPU_WORD.search(own_name)
        doubt = mostly_for_gpus(base) or ("only the name of the image says so" if named else "")
    for_gpu = (base.uses_gpu or doubt) and not TOOL_IMAGES.search(base.reference)
    reasons = (Reason(f"its image is {base.reference}", place, doubt),) if for_gpu else ()
    return Setup("image", "", place, for_gpu=reasons, base=base)


def _doubt_about(base: BaseImage) -> str:
    """Why an image that can use a GPU may be used without one."""
    by_pytorch = _PYTORCH_IMAGE.match(base.reference)
    return "PyTorch publishes no other image for the CPU" if by_pytorch else ""


def _program(
    dockerfile: Dockerfile, built: Built, files: ProjectFiles, context: str | None
) -> StartedProgram | None:
    """The program that ENTRYPOINT and CMD start."""
    started = next((stage.started for stage in reversed(built.stages) if stage.started), ())
    words = [word for command in started for word in command.words]
    folders = [context] if context is not None else list(contexts(dockerfile.path))
    return program_of(words, folders, files)


def _for_gpu(
    dockerfile: Dockerfile,
    built: Built,
    variables: Sequence[VariableSetting],
    program: StartedProgram | None,
) -> Iterator[Reason]:
    if built.base is not None and built.base.uses_gpu:
        doubt = _doubt_about(built.base)
        yield Reason(f"it is built from {built.base.reference}", built.base.place, doubt)
    for setting in variables:
        wanted = setting.name == "NVIDIA_VISIBLE_DEVICES" and setting.known not in (None, *_NO_GPUS)
        if wanted:
            yield Reason("it sets NVIDIA_VISIBLE_DEVICES", setting.place, DEFAULT_RUNTIME)
    name = os.path.basename(dockerfile.path)
    if _GPU_NAME.search(name) and built.stages:
        yield Reason(f"its file is called {name}", built.stages[-1].place, ONLY_A_NAME)
    if program is not None and program.needs_gpu is not None:
        yield needs_gpu(program.needs_gpu)


def _unless_for_cpu(
    reasons: Iterable[Reason], dockerfile: Dockerfile, files: ProjectFiles
) -> tuple[Reason, ...]:
    """Doubtful if another file is the variant for GPUs, because this one may be for the CPU."""
    folder, own = os.path.split(dockerfile.path)
    beside = "gpu/Dockerfile" if files.read(os.path.join(folder, "gpu", "Dockerfile")) else ""
    others = (name for name in files.names(folder or os.curdir) if kind_of(name) == "dockerfile")
    variant = next(filter(_GPU_NAME.search, others), beside)
    # Dockerfile.jupyter is another variant.
    is_plain = own.lower() in ("dockerfile", "containerfile")
    if not variant or not is_plain or _GPU_NAME.search(os.path.basename(folder)):
        return tuple(reasons)
    doubt = f"{variant} is the variant for GPUs"
    return tuple(each._replace(doubt=each.doubt or doubt) for each in reasons)


def _for_cpu(dockerfile: Dockerfile, last: Stage, files: ProjectFiles) -> Iterator[Reason]:
    folder, file = os.path.split(dockerfile.path)
    for name in (file, last.name):
        if _CPU_NAME.search(name):
            yield Reason(f"it is called {name}", last.place)
    if _is_variant(folder, files):
        yield Reason(f"its folder is called {os.path.basename(folder)}", last.place)
    # The comments of a file for GPUs speak of the CPU to warn of it, or of another stage.
    is_for_gpus = _GPU_NAME.search(file) or _GPU_NAME.search(last.name)
    for comment in dockerfile.comments if not is_for_gpus else ():
        if CPU_COMMENT.search(comment.text):
            yield Reason("a comment says so", comment)


def _is_variant(folder: str, files: ProjectFiles) -> bool:
    """A folder of a project such as docker/cpu. The name of the project itself says little."""
    name = os.path.basename(folder)
    if not _CPU_WORD.search(name) or _GPU_NAME.search(name):
        return False
    return name.lower() == "cpu" or _OF_PROJECTS.isdisjoint(files.names(folder))


def _has_own(
    names: re.Pattern[str],
    commands: Sequence[ShellCommand],
    requirements: Sequence[PinnedRequirement],
) -> bool:
    """Whether libraries of these names are installed, or downloaded."""
    return any(
        any(names.match(name) for name in system_packages(command))
        or any(names.match(word.rpartition("/")[2]) for word in command.words if "/" in word)
        for command in commands
    ) or any(names.match(each.name) for each in requirements)


def _copies_cuda(built: Built) -> bool:
    """COPY --from=nvidia/cuda:11.2.2-cudnn8-runtime-ubuntu20.04 /usr/local/cuda /usr/local/cuda"""
    return any(
        _OWN_CUDA.search(path.rpartition("/")[2]) or "/cuda" in path
        for stage in built.stages
        for copy in stage.copies
        for path in (*copy.sources, copy.target)
    )


def _python(
    base: BaseImage | None, installs: Sequence[PackageInstall], commands: Sequence[ShellCommand]
) -> str:
    """The Python that packages are installed for; empty if it is not certain."""
    named = {install.python for install in installs if install.python}
    if len(named) == 1:
        return named.pop()
    own = base.python if base is not None else ""
    for command in commands:
        words = map(_PYTHON_WORD.fullmatch, command.words)
        if any(match[1] != own for match in words if match is not None) or _OTHER_PYTHON.search(
            " ".join(command.words)
        ):
            return ""
    if base is None or named or not (base.brings_python or _installs_python(commands)):
        return ""
    return base.python


def _installs_python(commands: Sequence[ShellCommand]) -> bool:
    """Whether the Python of the system is installed: images of systems and of CUDA have none."""
    return any(not _SYSTEM_PYTHON.isdisjoint(system_packages(command)) for command in commands)


def _judged(
    path: str, requirements: tuple[PinnedRequirement, ...], python: str, judge: Judge
) -> tuple[RequirementVerdict, ...]:
    if not requirements:
        return ()
    return judge(RequirementsFile(path, "requirements.txt", requirements), machine_with(python))


def machine_with(python: str) -> MachineSpec:
    """A Linux machine about which nothing else is known."""
    unknown = Unknown("the file does not say it")
    return MachineSpec(
        Known(python, "the base image") if python else unknown,
        Known("linux_x86_64", "most images are for it"),
        unknown,
        unknown,
        unknown,
    )
