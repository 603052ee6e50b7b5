"""What a batch job or a job of a workflow gives to its commands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from whygpu.linter.image_setup import Judge, machine_with, published_image
from whygpu.linter.project_files import ProjectFiles
from whygpu.linter.started_script import needs_gpu, program_of
from whygpu.linter.yaml_file import documents_of
from whygpu.model.deployment import Grant, Reason, Setup, ShellCommand, StartedProgram
from whygpu.model.requirement_file import RequirementsFile
from whygpu.readers.deployment import batch_job, workflow
from whygpu.readers.deployment.package_installs import package_installs

_DROPS = re.compile(r"\s--(?:gres=(?:none|gpu:0)|gpus(?:-per-\w+)?=0)(?=\s)|\s-G ?0(?=\s)")
_STARTS_PYTHON = re.compile(r"(?:^|[\s/])(?:python[\d.]*|torchrun|accelerate|deepspeed)\s")
_ELSEWHERE = frozenset({"docker-machine", "ssh", "eval", "cml", "cml-runner", "sky", "modal"})
"""Commands after which others may run on another machine."""
_NEEDS_GPU = re.compile(r"^(?:sudo )?nvidia-smi(?: -L)?$|^(?:sudo )?docker run (?:.* )?--gpus[= ]")
_JOB_WANTS_GPU = re.compile(
    r"^(?:nvidia-smi|nvcc)$|^(?:cuda|cudnn|nvhpc)(?:[/\d.-]|$)|--(?:nv|gpus?)$", re.IGNORECASE
)


def job_setups(path: str, text: str, files: ProjectFiles) -> Iterator[Setup]:
    if not any(mark in text for mark in ("#SBATCH", "#PBS", "#BSUB")):
        return
    job = batch_job.read(path, text)
    if job is None:
        return
    reasons = []
    if re.search(r"gpu|a100|v100|h100", job.partition, re.IGNORECASE) and job.partition_place:
        reasons.append(Reason(f"it goes to {job.partition}", job.partition_place))
    for command in job.commands:
        wanted = next((word for word in command.words if _JOB_WANTS_GPU.search(word)), None)
        starts = command.words[0] in ("module", "ml", "nvidia-smi", "singularity", "apptainer")
        if wanted is not None and starts and _runs_python(job):
            reasons.append(Reason(f"it runs {' '.join(command.words[:4])}", command.place))
    program = _program(path, job.commands, files)
    if program is not None and program.needs_gpu is not None:
        reasons.append(needs_gpu(program.needs_gpu))
    yield Setup(
        kind="job",
        name="",
        place=job.place,
        for_gpu=tuple(reasons),
        grants=(*job.grants, *_dropped(job)),
        grant_elsewhere=job.grant_elsewhere,
        commented_grant=job.commented_grant,
        variables=job.variables,
        commands=job.commands,
        program=program,
    )


def _program(
    path: str, commands: Sequence[ShellCommand], files: ProjectFiles
) -> StartedProgram | None:
    """What a job starts; it may be submitted from its own folder, or from one above it."""
    folder = os.path.dirname(path)
    folders = dict.fromkeys((folder, os.path.dirname(folder)))
    found = (program_of(command.words, tuple(folders), files) for command in commands)
    return next((program for program in found if program is not None), None)


def _dropped(job: batch_job.Job) -> Iterator[Grant]:
    """`srun --gres=none` takes the GPUs of the job from the program that it starts."""
    if not job.grants:
        return
    for command in job.commands:
        words = " ".join(command.words)
        dropped = _DROPS.search(words) if command.words[0].endswith("srun") else None
        if dropped is not None and _STARTS_PYTHON.search(words):
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
    elif job.image and any(re.search(r"gpu|cuda|nvidia", label, re.I) for label in job.runner):
        yield Reason(f"it runs on {', '.join(job.runner)}", job.place)
