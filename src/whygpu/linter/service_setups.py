"""What a compose file gives to each of its services, with the image that the service runs."""

from __future__ import annotations

import heapq
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter

from whygpu.linter import gpu_signs
from whygpu.linter.compose_companions import companions
from whygpu.linter.container_command import computes
from whygpu.linter.image_setup import (
    CPU_COMMENT,
    ONLY_A_NAME,
    Judge,
    built_image,
    published_image,
)
from whygpu.linter.project_files import ProjectFiles, kind_of
from whygpu.linter.started_script import needs_gpu, program_of, several_processes
from whygpu.linter.yaml_file import IsTemplate, documents_of
from whygpu.model.deployment import Grant, Reason, Setup, StartedProgram
from whygpu.model.requirement_file import FileLine
from whygpu.readers.deployment import compose, yaml_tree
from whygpu.tables.base_images import TOOL_IMAGES, names_a_server

_GPU_WORD = re.compile(r"(?:^|[._-])(?:gpu|cuda)(?:[._-]|$)", re.IGNORECASE)
_OTHER_WORK = re.compile(
    r"\A(?:.*/)?(?:tensorboard|mlflow|nginx|redis-server|streamlit|alembic|wget|curl|rsync|aws|gsutil"
    r"|huggingface-cli|hf|flower|npm|sphinx-build|mkdocs|prefect|airflow)"
)
"""Programs that show what others computed, or that bring and look after their data."""
_RUNS_WITH_GPUS = re.compile(
    r"\bdocker run\s(?=(?:[^\n\\]|\\.|\\\n){0,800}?--(?:gpus|runtime[= ]nvidia))"
    r"(?:[^\n\\]|\\.|\\\n){0,1600}"
)
_COMMENT_LINES = re.compile(r"^[ \t]{0,200}#[^\n]*", re.MULTILINE)
_DEFAULT_RUNTIME = re.compile(r"default-runtime|nvidia-docker-compose")
_STARTS_SERVICES = re.compile(r"\bcompose\s(?:[^\n]|\\\n){0,200}?\b(?:up|run|start)\b")
_TWIN_MAY_DIFFER = "this one may be meant for the CPU"
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_CPU = re.compile(r"(?:^|[-_=.])cpu(?:$|[-_.:])|--no-?(?:gpu|cuda)", re.IGNORECASE)


def service_setups(path: str, text: str, files: ProjectFiles, judge: Judge) -> Iterator[Setup]:
    if yaml_tree.is_template(text):
        raise IsTemplate
    beside = _granted_beside(path, files)
    services = compose.read(path, documents_of(path, text), text).services
    said = tuple(_said_above(path, text))
    have_gpus = [_has_gpus(each, beside) for each in services]
    with_gpus = _by_image(itertools.compress(services, have_gpus))
    granted = _by_image(each for each in services if each.grants)
    reported: set[_Image] = set()
    for service, has_gpus in zip(services, have_gpus, strict=True):
        image = _image_of_service(service, path, files, judge)
        reasons = list(_image_reasons(service, image))
        program = _program(service, path, image, files)
        if program is not None and program.needs_gpu is not None:
            reasons.append(needs_gpu(program.needs_gpu))
        reasons += _gpu_names(service, services)
        reasons += _own_signs(service, granted, image)
        reasons = list(gpu_signs.by_the_default_runtime(service.variables, reasons))
        elsewhere = service.gets_more
        own_image = _image_of(service)
        if with_gpus.get(own_image, {}).keys() - {_role(service)}:
            # Another part of the program, so this one may need no GPU.
            elsewhere = "another service runs the same image with a GPU"
        elif own_image in reported:
            elsewhere = "another service runs the same image, and is reported"
        if not has_gpus:
            reported.add(own_image)
        if given := _given_beside(service, beside):
            elsewhere = f"{given} gives it GPUs"
        elif variant := _variant_beside(service, beside):
            doubt = f"{variant} has a variant of it with GPUs"
            reasons = [each._replace(doubt=each.doubt or doubt) for each in reasons]
        if reasons and not service.grants and not elsewhere:
            elsewhere = _run_elsewhere(service, path, files)
        yield Setup(
            kind="service",
            name=service.name,
            place=service.place,
            for_gpu=tuple(reasons),
            for_cpu=(
                *(image.for_cpu if image is not None else ()),
                *_for_cpu(service),
                *(said if not _is_gpu_variant(service) else ()),
            ),
            grants=tuple(_runtime_grant(grant, service, image) for grant in service.grants),
            grant_elsewhere=elsewhere,
            commented_grant=service.commented_grant,
            grant_is_offered=gpu_signs.is_offer(text, service.commented_grant),
            variables=service.variables,
            image=image,
            program=program,
            has_default_memory=service.has_default_memory,
            several_processes=several_processes(service.command, service.place),
        )


def _image_reasons(service: compose.Service, image: Setup | None) -> tuple[Reason, ...]:
    if image is None:
        return ()
    is_published = not service.build_folder and service.commented_grant is None
    replaces = service.replaces_program
    if is_published and not computes(image.base, service.command, replaces_program=replaces):
        return ()
    return image.for_gpu


def _run_elsewhere(service: compose.Service, path: str, files: ProjectFiles) -> str:
    """Files beside it may run its image with `docker run --gpus`, or name another runtime."""
    folder = os.path.dirname(path)
    runs, starts = "", False
    for name in files.names(folder or os.curdir):
        lower = name.lower()
        if not (lower.startswith("readme") or lower == "makefile" or lower.endswith(".sh")):
            continue
        text = files.read(os.path.join(folder, name)) or ""
        if not lower.startswith("readme"):
            text = _COMMENT_LINES.sub("", text)
        if _DEFAULT_RUNTIME.search(text):
            return f"{name} says that NVIDIA's runtime is the default"
        starts |= _STARTS_SERVICES.search(text) is not None
        for command in _RUNS_WITH_GPUS.findall(text):
            if service.image and service.image in command:
                return f"{name} runs its image with GPUs"
            runs = name
    if service.is_only_built and not starts:
        return "it is only built here"
    return f"{runs} runs images with GPUs" if runs and not starts else ""


def _own_signs(
    service: compose.Service, granted: _ByImage, image: Setup | None
) -> Iterator[Reason]:
    """What its command and its variables say, and its twins that have a GPU."""
    if TOOL_IMAGES.search(service.image) or _is_helper(image):
        return
    yield from gpu_signs.of_command(service.command, service.place)
    for reason in gpu_signs.of_command(service.health_check, service.place):
        yield reason._replace(text=reason.text.replace("its command", "its health check"))
    yield from gpu_signs.of_variables(service.variables)
    twins = granted.get(_image_of(service), {}).get(_role(service), ())
    twin = next((each for each in twins if each is not service), None)
    if twin is not None:
        yield Reason(f"{twin.name} runs the same with a GPU", service.place, _TWIN_MAY_DIFFER)


def _is_helper(image: Setup | None) -> bool:
    """An image of a system or a Python, as it is, has nothing that uses a GPU."""
    base = image.base if image is not None else None
    return base is not None and base.is_plain and not (image and image.commands)


def _gpu_names(service: compose.Service, services: Sequence[compose.Service]) -> list[Reason]:
    """A service that is called gpu, or the only one (that is built) in a file that is."""
    if _GPU_WORD.search(service.name) and not TOOL_IMAGES.search(service.name):
        return [Reason("so its name says", service.place, ONLY_A_NAME)]
    profile = next(filter(_GPU_WORD.search, service.profiles), "")
    if profile and not TOOL_IMAGES.search(service.name):
        return [Reason(f"its profile is called {profile}", service.place, ONLY_A_NAME)]
    file = os.path.basename(service.place.file)
    if not _GPU_WORD.search(file):
        return []
    built = [each for each in services if each.build_folder] or list(services)
    asked = any(each.grants or each.gets_more for each in services)
    if built == [service] and not asked:
        return [Reason(f"its file is called {file}", service.place, ONLY_A_NAME)]
    return []


def _is_gpu_variant(service: compose.Service) -> bool:
    """Of two services in a file, a comment about the CPU is for the other one."""
    return any(map(_GPU_WORD.search, (service.name, service.dockerfile, service.target)))


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
    settings = (*(image.variables if image is not None else ()), *service.variables)
    visible = next((s.value for s in reversed(settings) if s.name == _VISIBLE), None)
    if is_runtime and visible in ("none", "void"):
        return grant._replace(refused=f"{_VISIBLE} is {visible}")
    if not is_runtime or image is None or base is None or not base.is_plain:
        return grant
    said = any(setting.name == _VISIBLE for setting in settings)
    if said or service.has_variable_file or service.gets_more:
        return grant
    refused = (
        f"this runtime gives only the GPUs in {_VISIBLE}, which neither the service nor the image "
        f"{base.reference} sets"
    )
    return grant._replace(refused=refused)


_Image = tuple[str, ...]
_Role = tuple[str, ...]
_ByImage = dict[_Image, dict[_Role, list[compose.Service]]]
_NUMBER = re.compile(r"\d+")


def _image_of(service: compose.Service) -> _Image:
    if service.build_folder:
        return (service.build_folder, service.dockerfile, service.target)
    return (service.image,)


def _role(service: compose.Service) -> _Role:
    """Its name and its command without numbers: the workers of a cluster have the same role."""
    return tuple(_NUMBER.sub("#", word) for word in (service.name, *service.command))


def _by_image(services: Iterable[compose.Service]) -> _ByImage:
    found: _ByImage = {}
    for service in services:
        roles = found.setdefault(_image_of(service), {})
        roles.setdefault(_role(service), []).append(service)
    return found


_Row = tuple[int, str, compose.Service]


class _Beside:
    """Services with GPUs in other files, by their names and images."""

    def __init__(self) -> None:
        self._rows: dict[str | _Image, list[_Row]] = {}
        self._count = 0

    def add(self, file: str, service: compose.Service) -> None:
        self._count += 1
        keys: set[str | _Image] = {service.name, service.extended, _image_of(service)}
        for key in keys:
            self._rows.setdefault(key, []).append((self._count, file, service))

    def like(self, service: compose.Service) -> Iterator[_Row]:
        """Those of its name, those that extend it, and those of the image that it builds."""
        keys: list[str | _Image] = [service.name]
        if service.build_folder:
            keys.append(_image_of(service))
        return heapq.merge(*(self._rows.get(key, []) for key in keys), key=itemgetter(0))


def _same_image(one: compose.Service, other: compose.Service) -> bool:
    return one is not other and _image_of(one) == _image_of(other)


def _for_cpu(service: compose.Service) -> list[Reason]:
    # A service that is built may still name its image, as in "image: server-cpu:local".
    file = os.path.basename(service.place.file)
    words = (file, service.name, *re.split("[/:]", service.image), *service.command)
    is_other = bool(service.command) and _OTHER_WORK.fullmatch(service.command[0]) is not None
    for_cpu = is_other or any(map(_CPU.search, words))
    return [Reason("it is for the CPU", service.place)] if for_cpu else []


def _said_above(path: str, text: str) -> Iterator[Reason]:
    """The comments before the first key say what the file is for."""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            return
        if CPU_COMMENT.search(line):
            yield Reason("a comment says so", FileLine(path, number, line.strip()))


def _image_of_service(
    service: compose.Service, path: str, files: ProjectFiles, judge: Judge
) -> Setup | None:
    if service.build_folder:
        if "$" in service.build_folder + service.dockerfile + service.target:
            return None
        context = os.path.normpath(os.path.join(os.path.dirname(path), service.build_folder))
        file = os.path.join(context, service.dockerfile or "Dockerfile")
        arguments = dict(service.build_arguments)
        return built_image(file, context, service.target, files, judge, arguments)
    if not service.image or ("$" in service.image and not names_a_server(service.image)):
        return None
    return published_image(service.image, service.image_place)


def _granted_beside(path: str, files: ProjectFiles) -> _Beside:
    """The services with GPUs in other compose files that may be started together with this one."""
    found = _Beside()
    for other in dict.fromkeys((*_in_its_folder(path, files), *companions(path, files))):
        name = os.path.relpath(other, os.path.dirname(path) or os.curdir)
        for service in granted_services(other, files.read(other) or ""):
            found.add(name, service)
    return found


@lru_cache(maxsize=256)
def granted_services(path: str, text: str) -> tuple[compose.Service, ...]:
    """The services of a compose file that may get GPUs; each file is read for all the others."""
    if not text or yaml_tree.is_template(text):
        return ()
    try:
        services = compose.read(path, yaml_tree.load(path, text), text).services
    except (yaml_tree.NotYaml, yaml_tree.NoYamlReader):
        return ()
    return tuple(s for s in services if s.grants or (s.gets_more and not s.extended))


def _in_its_folder(path: str, files: ProjectFiles) -> Iterator[str]:
    folder, own = os.path.split(path)
    for name in files.names(folder or os.curdir):
        kind = kind_of(name)
        if name != own and (kind == "compose" or (kind == "yaml" and _GPU_WORD.search(name))):
            yield os.path.normpath(os.path.join(folder, name))


def _given_beside(service: compose.Service, beside: _Beside) -> str:
    """The file that gives GPUs to this service, to one that extends it, or to its image."""
    found = beside.like(service)
    return next((name for _, name, other in found if not _is_own_variant(service, other)), "")


def _variant_beside(service: compose.Service, beside: _Beside) -> str:
    """The file in which another variant of this service has GPUs."""
    return next((name for _, name, _ in beside.like(service)), "")


def _is_own_variant(service: compose.Service, other: compose.Service) -> bool:
    """Whether this service is by its name, or that of its file, the variant for GPUs as well.

    Two files that both say what the service runs are started one without the other.
    """
    own, its = (os.path.basename(each.place.file) for each in (service, other))
    both_complete = all(each.image or each.build_folder for each in (service, other))
    is_for_gpus = bool(_GPU_WORD.search(own)) and not _GPU_WORD.search(its)
    is_named = is_for_gpus or bool(_GPU_WORD.search(service.name))
    # A file that only builds an image is for the one that runs it.
    is_other_image = service.has_settings and not _same_image(service, other)
    return both_complete and (is_named or is_other_image)


def _has_gpus(service: compose.Service, beside: _Beside) -> bool:
    return bool(service.grants) or bool(_given_beside(service, beside))
