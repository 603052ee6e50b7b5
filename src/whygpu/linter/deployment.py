"""Composes what files say about a GPU: service -> image -> Dockerfile -> requirements.

Each function turns one file, with the files that it names, into a `Setup` for each service, pod,
job or image in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from whygpu.errors import UsageError
from whygpu.linter.image_setup import (
    Judge,
    built_image,
    image_setup,
    machine_with,
    published_image,
)
from whygpu.linter.job_setups import job_setups, workflow_setups
from whygpu.linter.pod_setups import pod_setups
from whygpu.linter.project_files import ProjectFiles, kind_of, load_from
from whygpu.linter.service_setups import service_setups
from whygpu.linter.yaml_file import NotRead
from whygpu.model.deployment import BaseImage, Reason, Setup, VariableSetting
from whygpu.model.requirement_file import FileLine
from whygpu.readers.deployment import dev_container, dockerfile
from whygpu.readers.requirement_files import read_requirements
from whygpu.tables.base_images import base_image

_ASSIGNMENT = re.compile(r"^\s*(?:export\s+)?(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<value>.*)$")


def setups_of(path: str, text: str, files: ProjectFiles, judge: Judge) -> list[Setup]:
    """What a file says. Raises NotRead."""
    kind = kind_of(path)
    if kind == "dockerfile":
        return list(_images(path, text, files, judge))
    if kind == "compose":
        return list(service_setups(path, text, files, judge))
    if kind == "yaml":
        return list(pod_setups(path, text, files))
    if kind == "workflow":
        return list(workflow_setups(path, text, judge))
    if kind == "job":
        return list(job_setups(path, text, files, judge))
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
        file = os.path.join(folder, read.dockerfile)
        image = built_image(file, context, read.target, files, judge, dict(read.arguments))
    yield Setup(
        kind="dev container",
        name="",
        place=read.place,
        for_gpu=image.for_gpu if image is not None else (),
        for_cpu=(*(image.for_cpu if image is not None else ()), *_for_cpu(path, read)),
        grants=read.grants,
        image=image,
    )


def _for_cpu(path: str, read: dev_container.DevContainer) -> Iterator[Reason]:
    """By its name, and by the folder .devcontainer/cpu of a project with several."""
    for name in (read.name, os.path.basename(os.path.dirname(path))):
        if re.search(r"(?<![a-z])cpu(?![a-z])", name, re.IGNORECASE):
            yield Reason(f"it is called {name}", read.place)


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
    base = None
    if any(verdict.kind in ("removed", "defect") for verdict in verdicts):
        base = _base_of_image_beside(path, files)
    yield Setup(
        "requirements",
        "",
        place,
        base=base,
        requirements=read.requirements,
        verdicts=verdicts,
    )


def _base_of_image_beside(path: str, files: ProjectFiles) -> BaseImage | None:
    """The base of an image that installs this file, which may have its packages already."""
    folder, name = os.path.split(path)
    for place in dict.fromkeys((folder, os.path.dirname(folder))):
        for other in files.names(place or os.curdir):
            if kind_of(other) != "dockerfile":
                continue
            text = files.read(os.path.join(place, other)) or ""
            stages = dockerfile.read(other, text).stages if name in text else ()
            if stages and stages[-1].base is not None:
                return base_image(stages[-1].base, stages[-1].place)
    return None
