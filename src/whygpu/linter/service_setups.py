"""What a compose file gives to each of its services, with the image that the service runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from whygpu.linter.image_setup import CPU_COMMENT, Judge, built_image, published_image
from whygpu.linter.project_files import ProjectFiles, kind_of
from whygpu.linter.started_script import needs_gpu, program_of, several_processes
from whygpu.linter.yaml_file import documents_of
from whygpu.model.deployment import Grant, Reason, Setup, StartedProgram, VariableSetting
from whygpu.model.requirement_file import FileLine
from whygpu.readers.deployment import compose, yaml_tree
from whygpu.tables.base_images import TOOL_IMAGES

_WANTS_GPU = re.compile(r"--gpus?(?:=|$)|^cuda(?::\d)?$|--device=cuda|--use[-_](?:gpu|cuda)")
_GPU_WORD = re.compile(r"(?:^|[._-])(?:gpu|cuda)(?:[._-]|$)", re.IGNORECASE)
_VIEWERS = re.compile(r"(?:.*/)?(?:tensorboard|mlflow|nginx|redis-server|streamlit)")
"""Programs that show what others computed."""
_CPU = re.compile(r"(?:^|[-_=.])cpu(?:$|[-_.:])|--no-?(?:gpu|cuda)", re.IGNORECASE)


def service_setups(path: str, text: str, files: ProjectFiles, judge: Judge) -> Iterator[Setup]:
    if yaml_tree.is_template(text):
        return
    granted = _granted_beside(path, files)
    services = compose.read(path, documents_of(path, text), text).services
    said = tuple(_said_above(path, text))
    for service in services:
        image = _image_of_service(service, path, files, judge)
        reasons = list(image.for_gpu) if image is not None else []
        reasons += _gpu_variables(service.variables)
        program = _program(service, path, image, files)
        if program is not None and program.needs_gpu is not None:
            reasons.append(needs_gpu(program.needs_gpu))
        reasons += _gpu_names(service, services)
        if any(map(_WANTS_GPU.search, service.command)):
            reasons.append(Reason("its command asks for a GPU", service.place))
        elsewhere = service.gets_more
        if any(_same_image(service, other) and other.grants for other in services):
            elsewhere = "another service runs the same image with a GPU"
        elif any(_same_image(service, other) for other in services[: services.index(service)]):
            elsewhere = "another service runs the same image, and is reported"
        if service.name in granted:
            elsewhere = f"{granted[service.name]} gives it GPUs"
        yield Setup(
            kind="service",
            name=service.name,
            place=service.place,
            for_gpu=tuple(reasons),
            for_cpu=(*(image.for_cpu if image is not None else ()), *_for_cpu(service), *said),
            grants=tuple(_runtime_grant(grant, service, image) for grant in service.grants),
            grant_elsewhere=elsewhere,
            commented_grant=service.commented_grant,
            variables=service.variables,
            image=image,
            program=program,
            has_default_memory=service.has_default_memory,
            several_processes=several_processes(service.command, service.place),
        )


def _gpu_names(service: compose.Service, services: Sequence[compose.Service]) -> list[Reason]:
    """A service that is called gpu, or the only one (that is built) in a file that is."""
    if _GPU_WORD.search(service.name) and not TOOL_IMAGES.search(service.name):
        return [Reason("so its name says", service.place)]
    file = os.path.basename(service.place.file)
    built = [each for each in services if each.build_folder] or list(services)
    asked = any(each.grants or each.gets_more for each in services)
    if _GPU_WORD.search(file) and built == [service] and not asked:
        return [Reason(f"its file is called {file}", service.place)]
    return []


def _program(
    service: compose.Service, path: str, image: Setup | None, files: ProjectFiles
) -> StartedProgram | None:
    """What the service starts: its own command, or else that of its image."""
    if not service.command:
        return image.program if image is not None else None
    folder = os.path.dirname(path)
    context = os.path.normpath(os.path.join(folder, service.build_folder))
    return program_of(service.command, tuple(dict.fromkeys((context, folder))), files)


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
    # A service that is built may still name its image, as in "image: server-cpu:local".
    file = os.path.basename(service.place.file)
    words = (file, service.name, *re.split("[/:]", service.image), *service.command)
    is_viewer = bool(service.command) and _VIEWERS.fullmatch(service.command[0]) is not None
    for_cpu = is_viewer or any(map(_CPU.search, words))
    return [Reason("it is for the CPU", service.place)] if for_cpu else []


def _said_above(path: str, text: str) -> Iterator[Reason]:
    """The comments before the first key say what the file is for."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            return
        if CPU_COMMENT.search(line):
            yield Reason("a comment says so", FileLine(path, number, line.strip()))


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
        return built_image(file, context, service.target, files, judge)
    if not service.image or "$" in service.image:
        return None
    return published_image(service.image, service.image_place)


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
