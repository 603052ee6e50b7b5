"""Composes what files say about a GPU: service -> image -> Dockerfile -> requirements.

Each function turns one file, with the files that it names, into a `Setup` for each service, pod,
job or image in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from whygpu.errors import UsageError
from whygpu.linter.image_setup import Judge, image_setup, machine_with, published_image
from whygpu.linter.project_files import ProjectFiles, kind_of, load_from
from whygpu.model.deployment import Grant, Reason, Setup, VariableSetting
from whygpu.model.requirement_file import FileLine
from whygpu.readers.deployment import (
    batch_job,
    compose,
    dev_container,
    dockerfile,
    kubernetes,
    yaml_tree,
)
from whygpu.readers.requirement_files import read_requirements
from whygpu.tables.base_images import TOOL_IMAGES

_WANTS_GPU = re.compile(r"--gpus?(?:=|$)|^cuda(?::\d)?$|--device=cuda|--use[-_](?:gpu|cuda)")
_JOB_WANTS_GPU = re.compile(
    r"^(?:nvidia-smi|nvcc)$|^(?:cuda|cudnn|nvhpc)(?:[/\d.-]|$)|--(?:nv|gpus?)$", re.IGNORECASE
)
_CPU = re.compile(r"(?:^|[-_=.])cpu(?:$|[-_.:])|--no-?(?:gpu|cuda)", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>.*)$")
_MANAGES_NODES = frozenset({"DaemonSet", "ClusterPolicy", "CustomResourceDefinition"})
_TEMPLATES = re.compile(r"\w*(?:TrainingRuntime|ServingRuntime|Template|Profile|Policy)")
"""Kinds that another object refers to, and to whose containers it may add the GPUs."""


class NotRead(Exception):
    """A file that belongs to lint, but that could not be read."""

    def __init__(self, message: str, *, is_syntax: bool = True) -> None:
        super().__init__(message)
        self.is_syntax = is_syntax


def setups_of(path: str, text: str, files: ProjectFiles, judge: Judge) -> list[Setup]:
    """What a file says. Raises NotRead."""
    kind = kind_of(path)
    if kind == "dockerfile":
        return list(_images(path, text, files, judge))
    if kind == "compose":
        return list(_services(path, text, files, judge))
    if kind == "yaml":
        return list(_pods(path, text))
    if kind == "job":
        return list(_job(path, text))
    if kind == "dev container":
        return list(_dev_container(path, text, files, judge))
    if kind == "variables":
        return [Setup("variables", "", _first_line(path, text), variables=_variables(path, text))]
    return list(_requirements(path, files, judge)) if kind == "requirements" else []


def _first_line(path: str, text: str) -> FileLine:
    return FileLine(path, 1, text.partition("\n")[0].strip())


def _images(path: str, text: str, files: ProjectFiles, judge: Judge) -> Iterator[Setup]:
    read = dockerfile.read(path, text)
    # A stage that no other one continues may be the target of a build.
    used = {stage.base for stage in read.stages} | {
        copy.from_stage for stage in read.stages for copy in stage.copies
    }
    numbers = {str(number): stage.name for number, stage in enumerate(read.stages)}
    used |= {numbers.get(name or "", "") for name in used}
    for stage in read.stages:
        if stage is read.stages[-1] or (stage.name and stage.name not in used):
            setup = image_setup(read, files, judge, target=stage.name)
            if setup is not None:
                yield setup


def _yaml(path: str, text: str) -> list[yaml_tree.Node]:
    try:
        return yaml_tree.load(path, text)
    except yaml_tree.NoYamlReader:
        raise NotRead(
            "it was not checked: pip install 'whygpu[infra]' adds the reader for YAML",
            is_syntax=False,
        ) from None
    except yaml_tree.NotYaml as error:
        raise NotRead(f"it is not valid YAML: {error}") from error


def _services(path: str, text: str, files: ProjectFiles, judge: Judge) -> Iterator[Setup]:
    if yaml_tree.is_template(text):
        return
    granted = _granted_beside(path, files)
    services = compose.read(path, _yaml(path, text), text).services
    for service in services:
        image = _image_of_service(service, path, files, judge)
        reasons = list(image.for_gpu) if image is not None else []
        reasons += _gpu_variables(service.variables)
        if any(map(_WANTS_GPU.search, service.command)):
            reasons.append(Reason("its command asks for a GPU", service.place))
        elsewhere = service.gets_more
        if any(_same_image(service, other) and other.grants for other in services):
            elsewhere = "another service runs the same image with a GPU"
        if service.name in granted:
            elsewhere = f"{granted[service.name]} gives it GPUs"
        yield Setup(
            kind="service",
            name=service.name,
            place=service.place,
            for_gpu=tuple(reasons),
            for_cpu=(*(image.for_cpu if image is not None else ()), *_for_cpu(service)),
            grants=tuple(_runtime_grant(grant, service, image) for grant in service.grants),
            grant_elsewhere=elsewhere,
            commented_grant=service.commented_grant,
            variables=service.variables,
            image=image,
        )


def _runtime_grant(grant: Grant, service: compose.Service, image: Setup | None) -> Grant:
    """`runtime: nvidia` gives no GPU unless the image or the service says which ones."""
    base = image.base if image is not None else None
    is_runtime = grant.text == "runtime: nvidia" and len(service.grants) == 1
    if not is_runtime or image is None or base is None or not base.is_plain:
        return grant
    said = any(s.name == "NVIDIA_VISIBLE_DEVICES" for s in (*service.variables, *image.variables))
    if said or service.has_variable_file or service.gets_more:
        return grant
    refused = (
        "this runtime gives only the GPUs in NVIDIA_VISIBLE_DEVICES, which neither the service nor "
        f"the image {base.reference} sets"
    )
    return grant._replace(refused=refused)


def _same_image(one: compose.Service, other: compose.Service) -> bool:
    def image(service: compose.Service) -> tuple[str, ...]:
        if service.build_folder:
            return (service.build_folder, service.dockerfile, service.target)
        return (service.image,)

    return one is not other and image(one) == image(other)


def _for_cpu(service: compose.Service) -> list[Reason]:
    words = (service.name, *service.command)
    return [Reason("it is for the CPU", service.place)] if any(map(_CPU.search, words)) else []


def _gpu_variables(variables: tuple[VariableSetting, ...]) -> list[Reason]:
    return [
        Reason("it sets NVIDIA_VISIBLE_DEVICES", setting.place)
        for setting in variables
        if setting.name == "NVIDIA_VISIBLE_DEVICES" and setting.value not in ("", "none", "void")
    ]


def _image_of_service(
    service: compose.Service, path: str, files: ProjectFiles, judge: Judge
) -> Setup | None:
    if service.build_folder:
        if "$" in service.build_folder + service.dockerfile + service.target:
            return None
        context = os.path.normpath(os.path.join(os.path.dirname(path), service.build_folder))
        file = os.path.join(context, service.dockerfile or "Dockerfile")
        return _built_image(file, context, service.target, files, judge)
    if not service.image or "$" in service.image:
        return None
    return published_image(service.image, service.image_place)


def _built_image(
    path: str, context: str, target: str, files: ProjectFiles, judge: Judge
) -> Setup | None:
    path = os.path.normpath(path)
    text = files.read(path)
    if text is None:
        return None
    return image_setup(dockerfile.read(path, text), files, judge, context=context, target=target)


def _granted_beside(path: str, files: ProjectFiles) -> dict[str, str]:
    """Services to which another compose file of the folder gives GPUs."""
    folder = os.path.dirname(path)
    found: dict[str, str] = {}
    for name in files.names(folder or os.curdir):
        if kind_of(name) != "compose" or name == os.path.basename(path):
            continue
        other = os.path.join(folder, name)
        text = files.read(other)
        if not text or yaml_tree.is_template(text):
            continue
        try:
            read = compose.read(other, yaml_tree.load(other, text), text)
        except (yaml_tree.NotYaml, yaml_tree.NoYamlReader):
            continue
        found.update({service.name: name for service in read.services if service.grants})
    return found


def _pods(path: str, text: str) -> Iterator[Setup]:
    if "apiVersion" not in text or "containers" not in text or yaml_tree.is_template(text):
        return
    try:
        documents = _yaml(path, text)
    except NotRead as error:
        if error.is_syntax and ("{{" in text or "nvidia.com/gpu" not in text):
            # A template of another kind, or not about GPUs.
            return
        raise
    for pod in kubernetes.read(path, documents, text):
        yield from _containers(pod)


def _containers(pod: kubernetes.Pod) -> Iterator[Setup]:
    plain = [container for container in pod.containers if not container.is_init]
    initial = [container for container in pod.containers if container.is_init]
    granted = any(container.grants for container in plain)
    elsewhere = ""
    if pod.kind in _MANAGES_NODES:
        elsewhere = f"a {pod.kind} may manage the GPUs of its nodes"
    elif _TEMPLATES.fullmatch(pod.kind):
        elsewhere = f"what uses this {pod.kind} may add the GPUs"
    elif "nvidia" in pod.runtime_class:
        elsewhere = "its runtime class may give it all GPUs of the node"
    elif pod.has_claims:
        elsewhere = "it has a resource claim"
    elif any(container.other_device for container in plain):
        elsewhere = "it asks for another accelerator"
    for number, container in enumerate(plain):
        image = None
        reasons: list[Reason] = []
        if container.image and not TOOL_IMAGES.search(container.image):
            image = published_image(container.image, container.image_place)
            reasons += [] if granted and not container.grants else image.for_gpu
        if pod.node_choice is not None and number == 0 and not granted:
            reasons.append(
                Reason(f"{pod.node_choice_text} puts it on a node with GPUs", pod.node_choice)
            )
        if TOOL_IMAGES.search(container.image):
            reasons = []
        in_init = [
            Grant(grant.text, grant.place, refused="it is in an init container, which ends before")
            for other in initial
            for grant in other.grants
            if not container.grants and not granted
        ]
        yield Setup(
            kind="pod",
            name="/".join(filter(None, (pod.name, container.name))),
            place=container.place,
            for_gpu=tuple(reasons),
            grants=(*container.grants, *in_init),
            grant_elsewhere=elsewhere,
            commented_grant=container.commented_grant,
            variables=container.variables,
            image=image,
        )


def _job(path: str, text: str) -> Iterator[Setup]:
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
    yield Setup(
        kind="job",
        name="",
        place=job.place,
        for_gpu=tuple(reasons),
        grants=job.grants,
        grant_elsewhere=job.grant_elsewhere,
        commented_grant=job.commented_grant,
        variables=job.variables,
        commands=job.commands,
    )


def _runs_python(job: batch_job.Job) -> bool:
    """A job that only compiles may load CUDA without a GPU."""
    return any(
        re.fullmatch(r"(?:.*/)?(?:python[\d.]*|torchrun|accelerate|deepspeed)", word)
        for command in job.commands
        for word in command.words
    )


def _dev_container(path: str, text: str, files: ProjectFiles, judge: Judge) -> Iterator[Setup]:
    try:
        read = dev_container.read(path, text)
    except (ValueError, RecursionError) as error:
        raise NotRead(f"it is not JSON: {error}") from error
    if read.is_composed:
        return
    image = None
    if read.image and "$" not in read.image:
        image = published_image(read.image, read.place)
    elif read.dockerfile and "$" not in read.dockerfile + read.context:
        folder = os.path.dirname(path)
        context = os.path.normpath(os.path.join(folder, read.context))
        image = _built_image(os.path.join(folder, read.dockerfile), context, "", files, judge)
    yield Setup(
        kind="dev container",
        name="",
        place=read.place,
        for_gpu=image.for_gpu if image is not None else (),
        for_cpu=image.for_cpu if image is not None else (),
        grants=read.grants,
        image=image,
    )


def _variables(path: str, text: str) -> tuple[VariableSetting, ...]:
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        match = _ASSIGNMENT.fullmatch(line)
        if match is None or line.lstrip().startswith("#"):
            continue
        value = match["value"].partition(" #")[0].strip().strip("\"'")
        place = FileLine(path, number, line.strip())
        found.append(VariableSetting(match["name"], None if "$" in value else value, place))
    return tuple(found)


def _requirements(path: str, files: ProjectFiles, judge: Judge) -> Iterator[Setup]:
    try:
        read = read_requirements(path, load_from(files))
    except UsageError:
        # Not every file of this name lists requirements.
        return
    place = FileLine(path, 1, "")
    verdicts = judge(read, machine_with(""))
    yield Setup("requirements", "", place, requirements=read.requirements, verdicts=verdicts)
