"""Reads Kubernetes manifests: the containers of every pod in them, and the GPUs that they get.

A pod is recognised by its form, wherever it is: a mapping with a list `containers` whose items have
names or images. So Jobs, CronJobs, Deployments, and the kinds of Ray, Kubeflow and Argo are read
alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.model.deployment import Grant, VariableSetting
from whygpu.model.requirement_file import FileLine, LineEdit
from whygpu.model.whole_numbers import whole_number
from whygpu.readers.deployment.yaml_tree import (
    Items,
    Map,
    Node,
    Text,
    child,
    entries,
    items,
    text,
    words,
)

_GPU_RESOURCE = re.compile(
    r"nvidia\.com/[\w.-]{1,60}"
    r"|(?:nvidia|aliyun|tencent|volcano|hami|baidu|alibabacloud|run\.ai)[\w.-]{0,60}"
    r"/[\w.-]{0,60}(?:gpu|mig)[\w.-]{0,60}"
)
"""Resources of GPUs. Clusters also name them by model, as in nvidia.com/a100."""
_MISSPELT_RESOURCE = {
    "nvidia.com/gpus": "nvidia.com/gpu",
    "nvidia.com/GPU": "nvidia.com/gpu",
    "nvidia.com/Gpu": "nvidia.com/gpu",
    "nvidia/gpu": "nvidia.com/gpu",
    "nvidia-gpu": "nvidia.com/gpu",
    "nvidia.gpu": "nvidia.com/gpu",
    "alpha.kubernetes.io/nvidia-gpu": "nvidia.com/gpu",
}
"""Names that no device plugin offers, with the right one. The last one was removed in
Kubernetes 1.11."""
_MIG_RESOURCE = re.compile(r"nvidia\.com/mig-(?P<profile>.+)")
_MIG_PROFILE = re.compile(r"(?:[1-7]c\.)?[1-7]g\.\d{1,3}gb(?:[.-]\w{1,10}){0,2}")
_OTHER_DEVICE = re.compile(
    r"^(?:amd\.com|gpu\.intel\.com|google\.com/tpu|aws\.amazon\.com/neuron|habana\.ai|huawei\.com"
    r"|cambricon\.com|hygon\.com|[\w.-]{0,60}fpga)"
    r"|^[\w.-]{1,60}/[\w.-]{0,60}(?:[gnxd][pc]u|mlu|mig|cuda|accelerator)"
)
"""Resources of other makers, and of programs that share GPUs under their own names."""
_GPU_ANNOTATION = re.compile(r"gpu", re.IGNORECASE)
"""As in gpu-fraction of KAI and Run:ai: a scheduler that reads it gives the GPU without a limit."""
_DEVICE_FOLDER = re.compile(r"/dev(?:/(?:nvidia\w*|dri|dxg))?/?")
_COMMENTED = re.compile(r"^\s*#\s*-?\s*[\"']?nvidia\.com/(?:gpu|mig)[\w.-]*[\"']?\s*:")
_GPU_NODE = re.compile(r"nvidia|gpu", re.IGNORECASE)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NO_GPU_NODE = re.compile(r"tpu|neuron|gaudi|amd|intel|:(?:false|none|0|no|cpu)$", re.IGNORECASE)


class Container(NamedTuple):
    name: str
    place: FileLine
    image: str
    image_place: FileLine
    is_init: bool
    grants: tuple[Grant, ...]
    variables: tuple[VariableSetting, ...]
    command: tuple[str, ...]
    replaces_program: bool
    """The command replaces that of the image; otherwise it only adds arguments."""
    commented_grant: FileLine | None
    has_default_memory: bool
    """Nothing gives it more shared memory than the 64 MB that containers get."""
    other_device: str
    """A resource of another maker that it asks for; mostly empty."""
    is_privileged: bool


class Pod(NamedTuple):
    kind: str
    """The kind of the object that contains it: Deployment, RayCluster."""
    name: str
    place: FileLine
    containers: tuple[Container, ...]
    node_choice: FileLine | None
    """The line of the selector that puts it on a node with GPUs."""
    node_choice_text: str
    toleration: FileLine | None
    """The line that lets it on nodes with GPUs, among others."""
    runtime_class: str
    has_claims: bool
    """It gets devices by resource claims."""
    annotation: str
    """A label or annotation about GPUs, which a scheduler may read; mostly empty."""
    mounts_devices: bool
    """It mounts device files of its node."""


def read(path: str, documents: list[Node], content: str) -> tuple[Pod, ...]:
    found: list[Pod] = []
    lines = content.split("\n")
    for document in documents:
        for kind, name, node in _objects(document):
            for specification, metadata in _pod_specifications(node, None):
                found.append(_pod(path, kind, name, specification, metadata, lines))
    return tuple(found)


def _objects(document: Node) -> Iterator[tuple[str, str, Node]]:
    """The objects of a document; a List has several."""
    if text(document, "kind").endswith("List") and items(document, "items"):
        for item in items(document, "items"):
            yield from _objects(item)
    elif text(document, "kind") and text(document, "apiVersion"):
        yield text(document, "kind"), text(document, "metadata", "name"), document


def _pod_specifications(
    node: Node, metadata: Node | None, depth: int = 0
) -> Iterator[tuple[Map, Node | None]]:
    """Each with the metadata of its pod."""
    if depth > 30:
        return
    if isinstance(node, Map):
        listed = items(node, "containers")
        if listed and all(text(item, "image") or text(item, "name") for item in listed):
            yield node, metadata
            return
        metadata = child(node, "metadata") or metadata
        for _, value, _ in entries(node):
            yield from _pod_specifications(value, metadata, depth + 1)
    elif isinstance(node, Items):
        for item in node.nodes:
            yield from _pod_specifications(item, metadata, depth + 1)


def _pod(
    path: str, kind: str, name: str, node: Map, metadata: Node | None, lines: list[str]
) -> Pod:
    plain = items(node, "containers")
    initial = items(node, "initContainers")
    choice, choice_text = _node_choice(node)
    containers = [
        *(_container(path, item, False, lines) for item in plain if isinstance(item, Map)),
        *(_container(path, item, True, lines) for item in initial if isinstance(item, Map)),
    ]
    if text(node, "hostIPC") == "true":
        containers = [each._replace(has_default_memory=False) for each in containers]
    return Pod(
        kind=kind,
        name=name,
        place=node.place,
        containers=tuple(containers),
        node_choice=choice,
        node_choice_text=choice_text,
        toleration=next(
            (each.place for each in items(node, "tolerations") if _is_gpu(text(each, "key"))), None
        ),
        runtime_class=text(node, "runtimeClassName"),
        has_claims=child(node, "resourceClaims") is not None,
        annotation=next(
            (
                key
                for part in ("annotations", "labels")
                for key, _, _ in entries(metadata, part)
                if _GPU_ANNOTATION.search(key)
            ),
            "",
        ),
        mounts_devices=any(
            _DEVICE_FOLDER.fullmatch(text(volume, "hostPath", "path"))
            for volume in items(node, "volumes")
        ),
    )


def _node_choice(node: Map) -> tuple[FileLine | None, str]:
    for key, value, place in entries(node, "nodeSelector"):
        word = value.value if isinstance(value, Text) else ""
        if _is_gpu_node(f"{key}:{word}"):
            return place, f"nodeSelector {key}"
    terms = child(node, "affinity", "nodeAffinity", _REQUIRED)
    for term in items(terms, "nodeSelectorTerms"):
        for rule in items(term, "matchExpressions"):
            key, listed = text(rule, "key"), " ".join(words(child(rule, "values")))
            chooses = text(rule, "operator") in ("In", "Exists")
            if chooses and _is_gpu_node(f"{key}:{listed}"):
                return rule.place, f"nodeAffinity {key}"
    return None, ""


def _is_gpu_node(chosen: str) -> bool:
    return bool(_GPU_NODE.search(chosen)) and not _NO_GPU_NODE.search(chosen)


def _container(path: str, node: Map, is_init: bool, lines: list[str]) -> Container:
    return Container(
        name=text(node, "name"),
        place=node.place,
        image=text(node, "image"),
        image_place=node.key_places.get("image", node.place),
        is_init=is_init,
        grants=tuple(_grants(node)),
        variables=tuple(_variables(node)),
        command=(*words(child(node, "command")), *words(child(node, "args"))),
        replaces_program=child(node, "command") is not None,
        commented_grant=_commented(path, node, lines),
        has_default_memory=not any(
            text(mount, "mountPath").rstrip("/") == "/dev/shm"
            for mount in items(node, "volumeMounts")
        ),
        other_device=next(
            (
                key
                for part in ("limits", "requests")
                for key, _, _ in entries(node, "resources", part)
                if _OTHER_DEVICE.match(key) and not _is_gpu(key)
            ),
            "",
        ),
        is_privileged=text(node, "securityContext", "privileged") == "true",
    )


def _grants(node: Map) -> Iterator[Grant]:
    limits = {
        key: (value.value if isinstance(value, Text) else "", place)
        for key, value, place in entries(node, "resources", "limits")
        if _is_gpu(key)
    }
    for key, (count, place) in limits.items():
        known = whole_number(count)
        yield Grant(f"{key}: {count}", place, known, _refused(key, count), _respelt(key, place))
    for key, value, place in entries(node, "resources", "requests"):
        count = value.value if isinstance(value, Text) else ""
        if not _is_gpu(key):
            continue
        written = f"{key}: {count}"
        if key not in limits:
            refused = "it is only a request, and Kubernetes accepts GPUs only with a limit"
            yield Grant(written, place, refused=refused)
        elif limits[key][0] != count:
            refused = f"it differs from the limit of {limits[key][0]}, and Kubernetes refuses that"
            yield Grant(written, place, refused=refused)
    if child(node, "resources", "claims") is not None:
        yield Grant("a resource claim", node.place)


def _is_gpu(resource: str) -> bool:
    return bool(_GPU_RESOURCE.fullmatch(resource)) or resource in _MISSPELT_RESOURCE


def _respelt(resource: str, place: FileLine) -> tuple[LineEdit, ...]:
    right = _MISSPELT_RESOURCE.get(resource, "")
    if not right or place.text.count(resource) != 1 or place.text.startswith("{"):
        return ()
    return (LineEdit(place, place.text.replace(resource, right)),)


def _refused(resource: str, count: str) -> str:
    """Why a limit gives no GPU; empty if it does, or if nobody can tell."""
    if resource in _MISSPELT_RESOURCE:
        return f"no node offers this resource, which is called {_MISSPELT_RESOURCE[resource]}"
    mig = _MIG_RESOURCE.fullmatch(resource)
    if mig is not None and not _MIG_PROFILE.fullmatch(mig["profile"]):
        return "a MIG resource is called like nvidia.com/mig-1g.5gb"
    if re.fullmatch(r"\d*\.\d+", count) and float(count) % 1:
        return "Kubernetes accepts only whole GPUs; time-slicing or MIG share one"
    return ""


def _variables(node: Map) -> Iterator[VariableSetting]:
    for item in items(node, "env"):
        name = text(item, "name")
        value = child(item, "value")
        if name:
            known = value.value if isinstance(value, Text) and "$(" not in value.value else None
            yield VariableSetting(name, known, item.place)


def _commented(path: str, node: Map, lines: list[str]) -> FileLine | None:
    """A limit that is commented out, in the lines of this container."""
    first = node.place.line
    indent = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    for number in range(first + 1, len(lines) + 1):
        line = lines[number - 1]
        if _COMMENTED.search(line):
            return FileLine(path, number, line.strip())
        content = line.strip()
        here = len(line) - len(line.lstrip())
        if content and not content.startswith("#") and here <= indent:
            return None
    return None
