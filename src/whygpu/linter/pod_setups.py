"""What a Kubernetes manifest gives to each container of its pods."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whygpu.linter.image_setup import published_image
from whygpu.linter.started_script import several_processes
from whygpu.linter.yaml_file import NotRead, documents_of
from whygpu.model.deployment import Grant, Reason, Setup
from whygpu.readers.deployment import kubernetes, yaml_tree
from whygpu.tables.base_images import TOOL_IMAGES

_MANAGES_NODES = frozenset({"DaemonSet", "ClusterPolicy", "CustomResourceDefinition"})
_TEMPLATES = re.compile(r"\w*(?:TrainingRuntime|ServingRuntime|Template|Profile|Policy)")
"""Kinds that another object refers to, and to whose containers it may add the GPUs."""


def pod_setups(path: str, text: str) -> Iterator[Setup]:
    if "apiVersion" not in text or "containers" not in text or yaml_tree.is_template(text):
        return
    try:
        documents = documents_of(path, text)
    except NotRead as error:
        if error.is_syntax and ("{{" in text or not _begins_as_manifest(text)):
            # A template of another kind, or a text that only contains manifests.
            return
        raise
    pods = kubernetes.read(path, documents, text)
    granted = {(pod.kind, pod.name) for pod in pods if _has_gpus(pod)}
    for pod in pods:
        yield from _containers(pod, (pod.kind, pod.name) in granted)


def _begins_as_manifest(text: str) -> bool:
    """By its first key: a script that writes manifests is no manifest, whatever its name."""
    lines = (line for line in text.lstrip("\ufeff").split("\n") if line.strip())
    first = next((line for line in lines if not line.startswith(("#", "---"))), "")
    return first.startswith(("apiVersion:", "kind:", "metadata:"))


def _has_gpus(pod: kubernetes.Pod) -> bool:
    return any(grant for each in pod.containers for grant in each.grants if not grant.refused)


def _containers(pod: kubernetes.Pod, has_gpus_elsewhere: bool) -> Iterator[Setup]:
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
    elif has_gpus_elsewhere and not granted:
        # The head of a Ray cluster and the launcher of an MPI job run the image of the workers.
        elsewhere = f"another pod of this {pod.kind} has the GPUs"
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
            has_default_memory=container.has_default_memory,
            several_processes=several_processes(container.command, container.place),
        )
