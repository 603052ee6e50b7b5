"""What a batch job or a job of a workflow gives to its commands."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from whygpu.errors import UsageError
from whygpu.linter import gpu_signs
from whygpu.linter.image_setup import Judge, machine_with, published_image
from whygpu.linter.project_files import ProjectFiles, kind_of, load_from
from whygpu.linter.started_script import needs_gpu, program_of, script_name, use_of_gpu
from whygpu.linter.yaml_file import documents_of
from whygpu.model.deployment import (
    CudaModule,
    Grant,
    OpenQuestion,
    Reason,
    Setup,
    ShellCommand,
    StartedProgram,
)
from whygpu.model.requirement_file import FileLine, PinnedRequirement, RequirementsFile
from whygpu.readers.deployment import batch_job, workflow
from whygpu.readers.deployment.package_installs import package_installs
from whygpu.readers.requirement_files import read_requirements

_DROPS = re.compile(r"\s--(?:gres=(?:none|gpu:0)|gpus(?:-per-\w+)?=0)(?=\s)|\s-G ?0(?=\s)")
_STARTS_PYTHON = re.compile(r"(?:^|[\s/])(?:python[\d.]*|torchrun|accelerate|deepspeed)\s")
_ELSEWHERE = frozenset({"docker-machine", "ssh", "eval", "cml", "cml-runner", "sky", "modal"})
"""Commands after which others may run on another machine."""
_NEEDS_GPU = re.compile(r"^(?:sudo )?nvidia-smi(?: -L)?$|^(?:sudo )?docker run (?:.* )?--gpus[= ]")
_MODULE_NAME = re.compile(r"(cuda|cudatoolkit|cudnn)[/-](\d+\.\d+)[\w.-]*", re.IGNORECASE)
_GPU_PARTITION = re.compile(
    r"gpu|[avhpb][12]00|(?<![a-z0-9])(?:a40|a6000|l40|k80|dgx|rtx|titan)", re.IGNORECASE
)
_CPU_PARTITION = re.compile(r"cpu|no-?gpu|non-?gpu", re.IGNORECASE)
_CPU_NAME = re.compile(r"(?:^|[._-])cpu(?:[._-]|$)", re.IGNORECASE)
_SUBMITS = re.compile(
    r"^[^#\n]{0,200}\b(?:sbatch|qsub|bsub)\s(?:[^\n]|\\\n){0,400}?"
    r"(?:--gres|--gpus|ngpus|-gpu\b|-G )",
    re.MULTILINE,
)
_JOB_WANTS_GPU = re.compile(
    r"^(?:/\S{1,100}/)?(?:nvidia-smi|nvcc)$|^(?:cuda|cudnn|nvhpc)(?:[/\d.-]|$)|--(?:nv|gpus?)$",
    re.IGNORECASE,
)

_GPU_MODULE = re.compile(r"(?:tensorflow|pytorch|torch|jax)[-_]gpu(?:/.*)?", re.IGNORECASE)
_SUBMITTERS = frozenset({"sbatch", "qsub", "bsub", "srun", "salloc", "echo"})
"""They start others, and name the GPUs of those."""
_WHOLE_NODES = "where jobs get whole nodes, it has one anyway"
_MAY_NEED_NONE = "what it runs may need none"
_LOADS = ("module", "ml", "singularity", "apptainer")
_ASKS = re.compile(
    r"^#(?:SBATCH|PBS|BSUB)\s[^\n]{0,200}(?:gres[=: ]\S{0,20}gpu|--gpus|-G ?\d|ngpus=|-gpu )",
    re.MULTILINE | re.IGNORECASE,
)
_GPU_LABEL = re.compile(r"gpu|cuda|nvidia", re.IGNORECASE)
_NOT_CONFINED = OpenQuestion(
    "numbers", "where jobs are not confined to their GPUs, it is a number of the whole machine"
)
_RUNNER = OpenQuestion("gpus", "its runner may give GPUs to all containers")
_MOST_BESIDE = 200
"""Names of a folder in which other jobs are looked for."""


def job_setups(path: str, text: str, files: ProjectFiles, judge: Judge) -> Iterator[Setup]:
    if not any(mark in text for mark in batch_job.MARKS.values()):
        return
    job = batch_job.read(path, text)
    if job is None:
        return
    program = _program(path, job.commands, files)
    requirements = _requirements(path, job.commands, files)
    file = RequirementsFile(path, "requirements.txt", requirements)
    reasons = tuple(_job_reasons(path, job, program, files)) if not job.grants else ()
    yield Setup(
        kind="job",
        name="",
        place=job.place,
        for_gpu=reasons,
        for_cpu=tuple(_job_for_cpu(path, job)),
        grants=(*job.grants, *_dropped(path, job, files)),
        grant_elsewhere=job.grant_elsewhere or _submitted_with_gpus(path, files),
        commented_grant=job.commented_grant,
        grant_is_offered=gpu_signs.is_offer(text, job.commented_grant),
        requirements=requirements,
        verdicts=judge(file, machine_with("")) if requirements else (),
        variables=job.variables,
        commands=job.commands,
        cuda_module=_cuda_module(job.commands),
        program=program,
        open_questions=(_NOT_CONFINED,),
    )


def _job_reasons(
    path: str, job: batch_job.Job, program: StartedProgram | None, files: ProjectFiles
) -> Iterator[Reason]:
    """What shows that a job without a request was made for a GPU.

    Where jobs get whole nodes, none asks for GPUs; one that does shows that this is not such a
    cluster.
    """
    beside = list(_jobs_with_gpus(path, job, files))
    doubt = "" if beside else _WHOLE_NODES
    if program is not None and program.needs_gpu is not None:
        yield needs_gpu(program.needs_gpu)._replace(doubt=doubt)
    yield from _what_it_runs(job, beside)
    for place, text in ((job.gpu_account, "its account"), (job.node_choice, "a constraint")):
        if place is not None:
            yield Reason(f"{text} is for GPUs", place, doubt or _MAY_NEED_NONE)
    if _is_for_gpus(job.partition) and job.partition_place:
        computes = _runs_python(job) or job.commented_grant is not None
        why = doubt or ("" if computes else _MAY_NEED_NONE)
        yield Reason(f"it goes to {job.partition}", job.partition_place, why)
    signs = gpu_signs.of_variables(job.variables)
    yield from (each._replace(doubt=each.doubt or doubt) for each in signs)
    yield from _likely(path, job, beside, files)


def _what_it_runs(job: batch_job.Job, beside: Sequence[str]) -> Iterator[Reason]:
    """Commands and modules for GPUs.

    Jobs of a project share their lines, so a step that prepares data loads CUDA as well: that
    counts only if the request is commented out, or if another job starts the same program with a
    GPU.
    """
    doubt = "" if beside else _WHOLE_NODES
    had_request = job.commented_grant is not None or _starts_the_same(job, beside)
    for command in job.commands if _runs_python(job) else ():
        words = command.words
        if any(map(_GPU_MODULE.fullmatch, words)) and words[0] in _LOADS:
            yield Reason(f"it runs {' '.join(words[:4])}", command.place, doubt)
        if not any(map(_JOB_WANTS_GPU.search, words)):
            continue
        reason = Reason(f"it runs {' '.join(words[:4])}", command.place, doubt)
        if os.path.basename(words[0]) == "nvidia-smi" or (words[0] in _LOADS and had_request):
            yield reason
        elif "--nv" in words:
            yield reason._replace(doubt="--nv does nothing where there is no GPU")
    for command in job.commands:
        if command.words[0] not in _SUBMITTERS:
            signs = gpu_signs.of_command(command.words, command.place)
            yield from (each._replace(doubt=each.doubt or doubt) for each in signs)


def _likely(
    path: str, job: batch_job.Job, beside: Sequence[str], files: ProjectFiles
) -> Iterator[Reason]:
    """What makes it only likely that a GPU is meant."""
    if _starts_the_same(job, beside):
        yield Reason(
            "another job of its folder starts the same program with a GPU",
            job.place,
            "this one may be meant for the CPU",
        )
    for command in job.commands:
        line = use_of_gpu(command.words, _folders(path), files)
        if line is not None:
            text = f"{line.file}:{line.line} uses one if it is there"
            yield Reason(text, command.place, "it works without one as well")


def _job_for_cpu(path: str, job: batch_job.Job) -> Iterator[Reason]:
    """Jobs for the CPU are mostly copies of those for GPUs, with the same modules."""
    name = os.path.basename(path)
    if _CPU_NAME.search(name):
        yield Reason(f"it is called {name}", job.place)
    if _CPU_PARTITION.search(job.partition) and job.partition_place:
        yield Reason(f"it goes to {job.partition}", job.partition_place)
    for command in job.commands:
        if gpu_signs.asks_for_cpu(command.words):
            yield Reason("its command asks for the CPU", command.place)


def _jobs_with_gpus(path: str, job: batch_job.Job, files: ProjectFiles) -> Iterator[str]:
    """The texts of the jobs beside this one, for the same scheduler, that ask for GPUs."""
    folder, own = os.path.split(path)
    for name in files.names(folder or os.curdir)[:_MOST_BESIDE]:
        if name == own or kind_of(name) != "job":
            continue
        text = files.read(os.path.join(folder, name)) or ""
        if batch_job.MARKS[job.scheduler] in text and _ASKS.search(text):
            yield text


def _starts_the_same(job: batch_job.Job, others: Sequence[str]) -> bool:
    scripts = filter(None, (script_name(command.words) for command in job.commands))
    return any(_named(script).search(text) for script in scripts for text in others)


@lru_cache(maxsize=256)
def _named(script: str) -> re.Pattern[str]:
    """train.py, or train of `python -m package.train`, as a whole word."""
    return re.compile(rf"(?<![\w-]){re.escape(script.removesuffix('.py'))}(?:\.py)?(?![\w.-])")


def _cuda_module(commands: Sequence[ShellCommand]) -> CudaModule | None:
    """module load cuda/11.8 cudnn/8.6; None if a job loads several, as for different steps."""
    found: dict[str, tuple[str, FileLine]] = {}
    for command in commands:
        if command.words[0] not in ("module", "ml"):
            continue
        for match in filter(None, map(_MODULE_NAME.fullmatch, command.words[1:])):
            kind = "cudnn" if "cudnn" in match[1].lower() else "cuda"
            version = match[2] if kind == "cuda" else match[2].partition(".")[0]
            if found.setdefault(kind, (version, command.place))[0] != version:
                return None
    if "cuda" not in found:
        return None
    return CudaModule(found["cuda"][0], found.get("cudnn", ("",))[0], found["cuda"][1])


def _requirements(
    path: str, commands: Sequence[ShellCommand], files: ProjectFiles
) -> tuple[PinnedRequirement, ...]:
    """What the job itself installs, also from files of requirements beside it."""
    found: list[PinnedRequirement] = []
    for install in package_installs(commands):
        found += install.requirements
        for name in install.files:
            beside = os.path.join(os.path.dirname(path), name)
            if "$" not in name and files.read(beside) is not None:
                with contextlib.suppress(UsageError):
                    found += read_requirements(beside, load_from(files)).requirements
    return tuple(found)


def _is_for_gpus(partition: str) -> bool:
    """Whether all partitions that a job may go to have GPUs, by their names."""
    names = partition.split(",")
    return all(_GPU_PARTITION.search(name) and not _CPU_PARTITION.search(name) for name in names)


def _submitted_with_gpus(path: str, files: ProjectFiles) -> str:
    """A script beside the job may submit it with the options that it does not have itself."""
    folder, name = os.path.split(path)
    for other in files.names(folder or os.curdir):
        if other == name or not (kind_of(other) == "job" or other.lower() == "makefile"):
            continue
        text = files.read(os.path.join(folder, other)) or ""
        submits = _SUBMITS.search(text)
        if submits is not None and (name in text or "$" in text[submits.start() :]):
            return f"{other} submits jobs with GPUs"
    return ""


def _program(
    path: str, commands: Sequence[ShellCommand], files: ProjectFiles
) -> StartedProgram | None:
    """What a job starts; it may be submitted from its own folder, or from one above it."""
    found = (program_of(command.words, _folders(path), files) for command in commands)
    return next((program for program in found if program is not None), None)


def _folders(path: str) -> tuple[str, ...]:
    folder = os.path.dirname(path)
    above = os.path.dirname(folder)
    return tuple(dict.fromkeys((folder, above, os.path.dirname(above))))


def _dropped(path: str, job: batch_job.Job, files: ProjectFiles) -> Iterator[Grant]:
    """`srun --gres=none` takes the GPUs of the job from the program that it starts.

    Beside other programs, it may start the one that needs no GPU, as a server of data.
    """
    steps = [each for each in job.commands if _STARTS_PYTHON.search(" ".join(each.words) + " ")]
    for command in steps if job.grants else ():
        words = " ".join(command.words)
        dropped = _DROPS.search(words) if command.words[0].endswith("srun") else None
        is_only = len(steps) == 1 or use_of_gpu(command.words, _folders(path), files) is not None
        if dropped is not None and is_only:
            refused = "this takes the GPUs of the job from the program that srun starts"
            yield Grant(dropped[0].strip(), command.place, refused=refused)


def _runs_python(job: batch_job.Job) -> bool:
    """A job that only compiles may load CUDA without a GPU."""
    return any(
        re.fullmatch(r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed)", word)
        for command in job.commands
        for word in command.words
    )


def workflow_setups(path: str, text: str, judge: Judge) -> Iterator[Setup]:
    for job in workflow.read(path, documents_of(path, text)):
        image = None
        if job.image and "$" not in job.image:
            image = published_image(job.image, job.image_place)
        installs = list(package_installs(job.commands))
        requirements = tuple(each for install in installs for each in install.requirements)
        file = RequirementsFile(path, "requirements.txt", requirements)
        yield Setup(
            kind="workflow job",
            name=job.name,
            place=job.place,
            for_gpu=tuple(_workflow_reasons(job)),
            grants=job.grants,
            grant_elsewhere="" if job.is_hosted or job.image else "its runner may have GPUs",
            requirements=requirements,
            verdicts=judge(file, machine_with("")) if requirements else (),
            variables=job.variables,
            image=image,
            open_questions=() if job.is_hosted else (_RUNNER,),
        )


def _workflow_reasons(job: workflow.WorkflowJob) -> Iterator[Reason]:
    """Only what fails without a GPU, or a container on a machine that was chosen for its GPU."""
    if job.is_hosted:
        if any(command.words[0] in _ELSEWHERE for command in job.commands):
            return
        for command in job.commands:
            if not command.may_fail and _NEEDS_GPU.search(" ".join(command.words)):
                words = " ".join(command.words[:2])
                yield Reason(f"it runs {words} on {job.runner[0]}, which has none", command.place)
    elif job.image and not job.is_of_gitlab and any(map(_GPU_LABEL.search, job.runner)):
        yield Reason(f"it runs on {', '.join(job.runner)}", job.place)
