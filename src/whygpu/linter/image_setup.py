"""What an image gives to a program: its Dockerfile, with the requirement files that it installs."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from whygpu.errors import UsageError
from whygpu.linter.gpu_signs import DEFAULT_RUNTIME
from whygpu.linter.project_files import ProjectFiles, load_from
from whygpu.linter.started_script import needs_gpu, program_of
from whygpu.model.deployment import (
    BaseImage,
    CopiedFile,
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
    PackageSource,
    PinnedRequirement,
    RequirementsFile,
    RequirementVerdict,
    SourceRole,
)
from whygpu.readers.deployment.dockerfile import Copy, Dockerfile, Run, Stage, read
from whygpu.readers.deployment.package_installs import (
    PackageInstall,
    changed_files,
    package_installs,
    system_packages,
)
from whygpu.readers.requirement_files import format_of, read_requirements
from whygpu.tables.base_images import TOOL_IMAGES, base_image, mostly_for_gpus

_OWN_CUDA = re.compile(
    r"cuda(?:-|$)|cudnn|libcudnn|libcublas|cudatoolkit|nvidia-(?:cuda|cudnn|cublas|pyindex)"
    r"|cuda_\d|tensorrt"
)
_CUDA_DOWNLOAD = re.compile(r"cudnn-|cuda_\d{1,2}[\w.]{0,60}\.run|cuda-repo|cuda-keyring|libcudnn")
_PYTHON_WORD = re.compile(
    r"(?:.*/)?(?:python|pip)(\d\.\d+)(?:-(?:dev|distutils|venv|full|minimal))?"
)
_OTHER_PYTHON = re.compile(
    r"deadsnakes|pyenv|conda|mamba|uv python|virtualenv -p|\bpoetry\b|python\.org/ftp|Python-\d"
)
_SYSTEM_PYTHON = frozenset(
    {"python3", "python3-pip", "python3-dev", "python3-full", "python3-venv"}
)
_PYTHON_FOLDERS = re.compile(
    r"venv|site-packages|dist-packages|/usr/local|/opt|\.local|conda|install|/app"
)
_INDEX_VARIABLES: dict[str, SourceRole] = {
    "PIP_INDEX_URL": "index",
    "PIP_EXTRA_INDEX_URL": "extra",
    "UV_INDEX_URL": "index",
    "UV_DEFAULT_INDEX": "index",
    "UV_EXTRA_INDEX_URL": "extra",
}
_EXACT = re.compile(r"==\s*(\d+(?:\.\d+){0,3})(?:\+[\w.]{1,30})?")
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
_HIGHEST = 3
"""How many folders above a Dockerfile may be its build context."""


Judge = Callable[[RequirementsFile, MachineSpec], tuple[RequirementVerdict, ...]]
"""The planner's judgement of requirements. This package may not import it, so callers pass it."""


class _Built(NamedTuple):
    """The stages that make up an image, from the base to the last one."""

    base: BaseImage | None
    stages: tuple[Stage, ...]


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
    built = _built(dockerfile, last)
    variables = tuple(setting for stage in built.stages for setting in stage.variables)
    runs = [run for stage in built.stages for run in stage.runs]
    commands = tuple(command for run in runs for command in run.commands)
    installs = _Installs(dockerfile, built, files, context)
    python = _python(built.base, installs.all, commands)
    requirements = tuple(installs.requirements)
    program = _program(dockerfile, built, files, context)
    answer = _judged(dockerfile.path, requirements, python, judge)
    return Setup(
        kind="image",
        name=last.name,
        place=last.place,
        for_gpu=tuple(_for_gpu(dockerfile, built, variables, program)),
        for_cpu=tuple(_for_cpu(dockerfile, last, files)),
        base=built.base,
        has_own_cuda=_has_own_cuda(commands, requirements) or _copies_cuda(built),
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
        unknown=tuple(installs.unknown),
    )


def built_image(
    path: str, context: str, target: str, files: ProjectFiles, judge: Judge
) -> Setup | None:
    path = os.path.normpath(path)
    text = files.read(path)
    if text is None:
        return None
    return image_setup(read(path, text), files, judge, context=context, target=target)


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


def _built(dockerfile: Dockerfile, last: Stage) -> _Built:
    stages = [last]
    while stages[0].base is not None:
        earlier = dockerfile.stages[: dockerfile.stages.index(stages[0])]
        parent = next((s for s in earlier if s.name and s.name == stages[0].base), None)
        if parent is None:
            break
        stages.insert(0, parent)
    name = stages[0].base
    base = None if name in (None, "scratch") else base_image(str(name), stages[0].place)
    return _Built(base, tuple(stages))


def _program(
    dockerfile: Dockerfile, built: _Built, files: ProjectFiles, context: str | None
) -> StartedProgram | None:
    """The program that ENTRYPOINT and CMD start."""
    started = next((stage.started for stage in reversed(built.stages) if stage.started), ())
    words = [word for command in started for word in command.words]
    folders = [context] if context is not None else list(_contexts(dockerfile.path))
    return program_of(words, folders, files)


def _for_gpu(
    dockerfile: Dockerfile,
    built: _Built,
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


def _for_cpu(dockerfile: Dockerfile, last: Stage, files: ProjectFiles) -> Iterator[Reason]:
    folder, file = os.path.split(dockerfile.path)
    for name in (file, last.name):
        if _CPU_NAME.search(name):
            yield Reason(f"it is called {name}", last.place)
    if _is_variant(folder, files):
        yield Reason(f"its folder is called {os.path.basename(folder)}", last.place)
    # The comments of a file for GPUs speak of the CPU to warn of it.
    for comment in dockerfile.comments if not _GPU_NAME.search(file) else ():
        if CPU_COMMENT.search(comment.text):
            yield Reason("a comment says so", comment)


def _is_variant(folder: str, files: ProjectFiles) -> bool:
    """A folder of a project such as docker/cpu. The name of the project itself says little."""
    name = os.path.basename(folder)
    if not _CPU_WORD.search(name) or _GPU_NAME.search(name):
        return False
    return name.lower() == "cpu" or _OF_PROJECTS.isdisjoint(files.names(folder))


def _has_own_cuda(
    commands: Sequence[ShellCommand], requirements: Sequence[PinnedRequirement]
) -> bool:
    return any(
        any(_OWN_CUDA.match(name) for name in system_packages(command))
        or any(_CUDA_DOWNLOAD.search(word) for word in command.words)
        for command in commands
    ) or any(_OWN_CUDA.match(each.name) for each in requirements)


def _copies_cuda(built: _Built) -> bool:
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
    for command in commands:
        line = " ".join(command.words)
        if _OTHER_PYTHON.search(line) or any(map(_PYTHON_WORD.fullmatch, command.words)):
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
    """A Linux machine of which nothing else is known."""
    unknown = Unknown("the file does not say it")
    return MachineSpec(
        Known(python, "the base image") if python else unknown,
        Known("linux_x86_64", "most images are for it"),
        unknown,
        unknown,
        unknown,
    )


class _Installs:
    """The requirements of an image, its own and those of the files that it installs."""

    def __init__(
        self, dockerfile: Dockerfile, built: _Built, files: ProjectFiles, context: str | None
    ) -> None:
        self._files = files
        self._contexts = [context] if context is not None else list(_contexts(dockerfile.path))
        self._indexes: list[PackageSource] = []
        """Those that variables name."""
        self.all: list[PackageInstall] = []
        self.requirements: list[PinnedRequirement] = []
        self.unknown: list[str] = []
        self._changed: set[str] = set()
        """The names of files that commands of the image change."""
        for stage in (*_copied_from(dockerfile, built), *built.stages):
            self._indexes += _indexes(stage.variables)
            for run in stage.runs:
                self._changed |= set(changed_files(run.commands))
                for install in package_installs(run.commands):
                    self._add(install, stage, run)

    def _add(self, install: PackageInstall, stage: Stage, run: Run) -> None:
        if self._indexes and not install.sources:
            sources = tuple(self._indexes)
            found = tuple(each._replace(sources=sources) for each in install.requirements)
            install = install._replace(sources=sources, requirements=found)
        self.all.append(install)
        self._require(install.requirements, install)
        self.unknown += [f"{item.place.line}: {item.reason}" for item in install.unread]
        for name in install.files:
            self._add_file(name, install, stage, run)
        found_locks = (self._found_lock(name, stage, run) for name in install.locks)
        if (lock := next(filter(None, found_locks), None)) is not None:
            self._read(lock, install)
        for folder in install.projects:
            wanted = f"{folder.rstrip('/')}/pyproject.toml"
            if (path := self._found(wanted, stage, run)) is not None:
                self._read(path, install)

    def _add_file(self, name: str, install: PackageInstall, stage: Stage, run: Run) -> None:
        path = self._found(name, stage, run)
        if path is None:
            self.unknown.append(f"{name} was not found")
        else:
            self._read(path, install)

    def _found_lock(self, name: str, stage: Stage, run: Run) -> str | None:
        """A file that is copied, or mounted for the one command that needs it."""
        found = self._found(name, stage, run)
        if found is not None or not run.mounts:
            return found
        paths = (os.path.join(context, name) for context in self._contexts)
        return next((path for path in paths if self._files.read(path) is not None), None)

    def _read(self, path: str, install: PackageInstall) -> None:
        try:
            format_of(path)
            found = read_requirements(path, load_from(self._files))
        except UsageError as error:
            self.unknown.append(str(error))
            return
        wanted = [each for each in found.requirements if not each.is_optional]
        sources = install.sources
        self._require(
            [each._replace(sources=(*each.sources, *sources)) for each in wanted], install
        )

    def _require(self, wanted: Sequence[PinnedRequirement], install: PackageInstall) -> None:
        """Without those that an earlier command has installed, in a release that will do."""
        there = {each.name: each for each in self.requirements} if install.keeps_installed else {}
        self.requirements += [
            each
            for each in wanted
            if each.name not in there or each.extras or not _will_do(there[each.name], each)
        ]

    def _found(self, name: str, stage: Stage, run: Run) -> str | None:
        """The file of the project that is called this in the image, and is not changed there."""
        if "$" in name or "://" in name or os.path.basename(name) in self._changed:
            return None
        wanted = os.path.normpath(os.path.join(run.workdir, name))
        for context in self._contexts:
            for copy in reversed(stage.copies):
                for source in self._sources_of(copy, wanted, context):
                    if self._files.read(source) is not None:
                        return source
        return None

    def _sources_of(self, copy: Copy, wanted: str, context: str) -> Iterator[str]:
        """What a COPY instruction may have copied to this name."""
        if copy.from_stage:
            return
        target = os.path.normpath(os.path.join(copy.workdir, copy.target))
        for source in copy.sources:
            path = os.path.normpath(os.path.join(context, source.lstrip("/")))
            if path != os.path.normpath(context) and not _is_below(path, context):
                continue
            if "*" in source:
                # COPY requirements*.txt ./
                path = os.path.join(os.path.dirname(path), os.path.basename(wanted))
            if wanted == target or wanted == os.path.join(target, os.path.basename(path)):
                yield path
            if _is_below(wanted, target):
                yield os.path.normpath(os.path.join(path, os.path.relpath(wanted, target)))


def _will_do(installed: PinnedRequirement, wanted: PinnedRequirement) -> bool:
    """Whether what one requirement has installed is in the range of another one."""
    clauses = [clause.strip() for clause in wanted.specifier.split(",") if clause.strip()]
    if not clauses:
        return True
    pin = _EXACT.fullmatch(installed.specifier.strip())
    if pin is None:
        # The newest release.
        return not installed.specifier and all(clause.startswith(">") for clause in clauses)
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(wanted.specifier).contains(pin[1], prereleases=True)
    except InvalidSpecifier:
        return False


def _indexes(variables: Sequence[VariableSetting]) -> Iterator[PackageSource]:
    """The indexes of pip that variables choose for the commands after them."""
    for setting in variables:
        role = _INDEX_VARIABLES.get(setting.name)
        for url in (setting.value or "").split() if role is not None else ():
            if "$" not in url and role is not None:
                yield PackageSource(url, role, setting.place)


def _is_below(path: str, folder: str) -> bool:
    start = os.path.normpath(folder)
    if start == os.curdir:
        return not path.startswith((os.pardir, os.sep))
    return path.startswith(start.rstrip(os.sep) + os.sep)


def _contexts(path: str) -> Iterator[str]:
    """The folders that may be the build context: that of the Dockerfile, or one above it."""
    folder = os.path.dirname(path) or os.curdir
    yield folder
    for _ in range(_HIGHEST):
        if folder in (os.curdir, os.sep) or not folder:
            return
        folder = os.path.dirname(folder) or os.curdir
        yield folder


def _copied_from(dockerfile: Dockerfile, built: _Built) -> Iterator[Stage]:
    """Earlier stages whose Python packages are copied into the image."""
    for stage in built.stages:
        for copy in stage.copies:
            origin = dockerfile.stage(copy.from_stage) if copy.from_stage else None
            copied = " ".join((*copy.sources, copy.target))
            if origin is not None and origin not in built.stages and _PYTHON_FOLDERS.search(copied):
                yield from _built(dockerfile, origin).stages
