"""What a Kubernetes manifest gives to each container of its pods."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from whygpu.linter import gpu_signs
from whygpu.linter.container_command import computes
from whygpu.linter.image_setup import CPU_COMMENT, ONLY_A_NAME, published_image
from whygpu.linter.project_files import ProjectFiles, kind_of
from whygpu.linter.started_script import needs_gpu, program_of, several_processes
from whygpu.linter.yaml_file import IsTemplate, NotRead, documents_of
from whygpu.model.deployment import Grant, Reason, Setup
from whygpu.model.requirement_file import FileLine
from whygpu.readers.deployment import kubernetes, yaml_tree
from whygpu.tables.base_images import TOOL_IMAGES

_DEFINITION = "CustomResourceDefinition"
_MANAGES_NODES = frozenset({"DaemonSet", "ClusterPolicy", _DEFINITION})
_HELPERS = re.compile(
    r"(?:^|/)(?:busybox|nginx|redis|fluentd|fluent-bit|envoy|curl|kubectl|minio|postgres(?:ql)?|mysql"
    r"|mongo(?:db)?|rabbitmq|kafka|qdrant|milvus|etcd|prometheus|grafana|traefik|haproxy|mc|git)"
    r"(?::|@|$)"
)
_GIVES_GPUS = re.compile(
    r"^[^#\n]{0,200}nvidia\.com/[\w.-]{1,60}[\"']?:\s{0,5}[\"']?[1-9]", re.MULTILINE
)
_GPU_WORD = re.compile(r"(?:^|[._-])(?:gpu|cuda)(?:[._-]|$)", re.IGNORECASE)
_CPU_NAME = re.compile(r"(?:^|[._/:-])cpu(?:[._/:-]|$)", re.IGNORECASE)
_ABOUT_GPUS = re.compile(
    r"exporter|operator|plugin|driver|monitor|metrics|scheduler|scaler|controller|manager|broker"
    r"|gateway|proxy|api|dashboard|ui(?:$|-)|webhook|admission|detector|discovery|labeler|quota",
    re.IGNORECASE,
)
"""Names of programs that look after GPUs and do not compute on them."""
_HIGHEST = 4
"""How many folders, from that of a manifest upwards, may be that of the program."""
_MOST_BESIDE = 200
"""Manifests in which a patch of a pod is looked for."""
_TEMPLATES = re.compile(r"\A\w*(?:TrainingRuntime|ServingRuntime|Template|Profile|Policy)")
"""Kinds that another object refers to, and to whose containers it may add the GPUs."""
_KINDS = re.compile(r"^kind:[ \t]{0,9}[\"']?(\w{1,99})", re.MULTILINE)


def pod_setups(path: str, text: str, files: ProjectFiles) -> Iterator[Setup]:
    if "apiVersion" not in text or "containers" not in text:
        return
    if yaml_tree.is_template(text):
        raise IsTemplate
    if set(_KINDS.findall(text)) == {_DEFINITION}:
        # It describes pods that others may write, in a megabyte of YAML, and runs none.
        return
    try:
        documents = documents_of(path, text)
    except NotRead as error:
        if error.is_syntax and "{{" in text:
            raise IsTemplate from error
        if error.is_syntax and not _begins_as_manifest(text):
            # A text that only contains manifests.
            return
        raise
    pods = kubernetes.read(path, documents, text)
    said = tuple(_said_in_comments(path, text))
    granted: dict[tuple[str, str], list[kubernetes.Container]] = {}
    for pod in pods:
        having = [each for each in pod.containers if _gets_gpus(each)]
        granted.setdefault((pod.kind, pod.name), []).extend(having)
    for pod in pods:
        for setup in _containers(pod, granted[pod.kind, pod.name], files):
            if setup.for_gpu and not setup.grants and not setup.grant_elsewhere:
                beside = _granted_beside(path, pod.name, files)
                reasons = (e._replace(doubt=e.doubt or beside.in_variant) for e in setup.for_gpu)
                setup = setup._replace(for_gpu=tuple(reasons), grant_elsewhere=beside.by_patch)
            yield setup._replace(
                for_cpu=(*said, *setup.for_cpu),
                grant_is_offered=gpu_signs.is_offer(text, setup.commented_grant),
            )


class _Beside(NamedTuple):
    """What other manifests give to the object of the same name."""

    by_patch: str = ""
    """A patch gives it GPUs; mostly empty."""
    in_variant: str = ""
    """Another complete description of it has GPUs: one of both is applied; mostly empty."""


def _granted_beside(path: str, pod: str, files: ProjectFiles) -> _Beside:
    variant = ""
    for other in itertools.islice(_manifests_around(path, files), _MOST_BESIDE if pod else 0):
        text = files.read(other) or ""
        complete = _is_complete(other, text, pod) if _GIVES_GPUS.search(text) else None
        if complete is False:
            return _Beside(by_patch=f"{other} gives GPUs to {pod}")
        if complete:
            variant = variant or f"{other} has a {pod} with GPUs"
    return _Beside(in_variant=variant)


def _is_complete(path: str, text: str, name: str) -> bool | None:
    """Whether a manifest describes the object of this name with its images; None if not at all."""
    named = rf"\bname:\s{{0,5}}[\"']?{re.escape(name)}[\"']?\s{{0,5}}(?:[,}}#]|$)"
    if not re.search(named, text, re.MULTILINE):
        return None
    if yaml_tree.is_template(text):
        return True
    complete = _complete_in(path, text)
    # A patch of Kustomize may have another form.
    return complete is None or complete.get(name, False)


@lru_cache(maxsize=256)
def _complete_in(path: str, text: str) -> dict[str, bool] | None:
    """Whether each object of a manifest is described with its images; None if it is not read."""
    try:
        documents = documents_of(path, text)
    except NotRead:
        return None
    found: dict[str, bool] = {}
    for pod in kubernetes.read(path, documents, text):
        has_images = all(each.image for each in pod.containers)
        found[pod.name] = found.get(pod.name, True) and has_images
    return found


def _manifests_around(path: str, files: ProjectFiles) -> Iterator[str]:
    """Those of its folder and of the folders in it; for a base of Kustomize, also its overlays."""
    folder = os.path.dirname(path) or os.curdir
    listed = files.names(folder)
    folders = [folder, *(os.path.join(folder, name) for name in listed)]
    if any(name.lower().startswith("kustomization") for name in listed):
        above = os.path.dirname(folder) or os.curdir
        beside = [os.path.join(above, name) for name in files.names(above)]
        overlays = os.path.join(above, "overlays")
        folders += [*beside, *(os.path.join(overlays, name) for name in files.names(overlays))]
    for each in dict.fromkeys(map(os.path.normpath, folders)):
        for name in () if kind_of(each) else files.names(each):
            other = os.path.normpath(os.path.join(each, name))
            if kind_of(name) == "yaml" and other != os.path.normpath(path):
                yield other


def _said_in_comments(path: str, text: str) -> Iterator[Reason]:
    for number, line in enumerate(text.split("\n"), 1):
        _, mark, comment = line.partition("#")
        if mark and CPU_COMMENT.search(comment):
            yield Reason("a comment says so", FileLine(path, number, line.strip()))


def _begins_as_manifest(text: str) -> bool:
    """By its first key: a script that writes manifests is no manifest, whatever its name."""
    lines = (line for line in text.lstrip("\ufeff").split("\n") if line.strip())
    first = next((line for line in lines if not line.startswith(("#", "---"))), "")
    return first.startswith(("apiVersion:", "kind:", "metadata:"))


def _gets_gpus(container: kubernetes.Container) -> bool:
    return any(not grant.refused for grant in container.grants)


def _is_twin(one: kubernetes.Container, other: kubernetes.Container) -> bool:
    """As the master and the workers of a PyTorchJob, which start the same program."""
    return bool(one.command) and (one.image, one.command) == (other.image, other.command)


def _only_helpers_have_gpus(containers: list[kubernetes.Container]) -> bool:
    """Whether the limit is on the wrong container: one that cannot compute on a GPU."""
    return all(_HELPERS.search(each.image) for each in containers if each.grants)


def _has_twin(some: list[kubernetes.Container], others: list[kubernetes.Container]) -> bool:
    return any(_is_twin(one, other) for one in some for other in others)


def _containers(
    pod: kubernetes.Pod, with_gpus: list[kubernetes.Container], files: ProjectFiles
) -> Iterator[Setup]:
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
    elif with_gpus and not granted and not _has_twin(plain, with_gpus):
        # The head of a Ray cluster and the launcher of an MPI job run the image of the workers.
        elsewhere = f"another pod of this {pod.kind} has the GPUs"
    elif not all(container.image for container in plain):
        elsewhere = "it is a patch of another manifest"
    elif pod.has_claims:
        elsewhere = "it has a resource claim"
    elif any(container.other_device for container in plain):
        elsewhere = "it asks for another accelerator"
    elif pod.annotation:
        elsewhere = f"what reads {pod.annotation} may give it a GPU"
    elif pod.mounts_devices or any(container.is_privileged for container in plain):
        elsewhere = "it has the device files of its node"
    for container in plain:
        image = None
        if container.image and not TOOL_IMAGES.search(container.image):
            image = published_image(container.image, container.image_place)
        is_beside = granted and not container.grants and not _only_helpers_have_gpus(plain)
        reasons: list[Reason] = []
        if not is_beside:
            reasons += _reasons(pod, container, image, is_first=container is plain[0])
            reasons += _own_signs(container, image, files)
        if not container.grants and _has_twin([container], with_gpus):
            text = f"another container of this {pod.kind} runs the same with a GPU"
            reasons.append(Reason(text, container.place, "this one may be meant for the CPU"))
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
            for_gpu=tuple(gpu_signs.by_the_default_runtime(container.variables, reasons)),
            for_cpu=tuple(_for_cpu(pod, container)),
            grants=(*container.grants, *in_init),
            grant_elsewhere=elsewhere,
            commented_grant=container.commented_grant,
            variables=container.variables,
            image=image,
            has_default_memory=container.has_default_memory,
            several_processes=several_processes(container.command, container.place),
        )


def _reasons(
    pod: kubernetes.Pod, container: kubernetes.Container, image: Setup | None, *, is_first: bool
) -> Iterator[Reason]:
    """Why a container is meant for a GPU: its image, its node, or a limit that is commented out."""
    if image is None or image.base is None or _HELPERS.search(container.image):
        return
    had_limit = container.commented_grant is not None
    replaces = container.replaces_program
    may_compute = computes(image.base, container.command, replaces_program=replaces)
    if had_limit or may_compute:
        yield from image.for_gpu
    if image.base.is_plain:
        return
    if pod.node_choice is not None and is_first:
        doubt = "" if had_limit or image.for_gpu else "what it runs there may need none"
        yield Reason(f"{pod.node_choice_text} puts it on a node with GPUs", pod.node_choice, doubt)
    elif pod.toleration is not None and is_first and (had_limit or may_compute):
        # Many pods that compute nothing tolerate these nodes, so that they find room.
        doubt = "" if had_limit else "what runs there may need none"
        yield Reason("it tolerates nodes with GPUs", pod.toleration, doubt)
    for name in (pod.name, container.name, os.path.basename(container.place.file)):
        is_named = _GPU_WORD.search(name) and not _ABOUT_GPUS.search(name)
        if is_named and is_first and may_compute:
            yield Reason(f"it is called {name}", container.place, ONLY_A_NAME)


def _own_signs(
    container: kubernetes.Container, image: Setup | None, files: ProjectFiles
) -> Iterator[Reason]:
    """What its command, its variables and the program that it starts say."""
    if image is None or image.base is None or _HELPERS.search(container.image):
        return
    yield from gpu_signs.of_command(container.command, container.place)
    if not image.base.is_plain:
        yield from gpu_signs.of_variables(container.variables)
    program = program_of(container.command, tuple(_folders_above(container.place.file)), files)
    if program is not None and program.needs_gpu is not None:
        yield needs_gpu(program.needs_gpu)._replace(doubt="its image may have another file")


def _folders_above(path: str) -> Iterator[str]:
    """Manifests name programs by their path in the image, which mostly begins at the project."""
    folder = os.path.dirname(path) or os.curdir
    for _ in range(_HIGHEST):
        yield folder
        if folder in (os.curdir, os.sep):
            return
        folder = os.path.dirname(folder) or os.curdir


def _for_cpu(pod: kubernetes.Pod, container: kubernetes.Container) -> Iterator[Reason]:
    names = (os.path.basename(container.place.file), pod.name, container.name, container.image)
    for name in names:
        if _CPU_NAME.search(name):
            yield Reason(f"it is called {name}", container.place)
    if gpu_signs.asks_for_cpu(container.command):
        yield Reason("its command asks for the CPU", container.place)
