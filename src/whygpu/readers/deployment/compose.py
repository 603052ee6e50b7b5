"""Reads compose files: what each service runs, and which GPUs it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.model.deployment import Grant, VariableSetting
from whygpu.model.requirement_file import FileLine
from whygpu.model.whole_numbers import whole_number
from whygpu.readers.deployment.shell_words import substituted
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

_COMMENTED = re.compile(
    r"^\s*#(?:.*(?:capabilities:\s*\[?\s*['\"]?gpu|runtime:\s*nvidia)|\s*gpus:)"
)
_GPU_NODE = re.compile(r"gpu|cuda|nvidia", re.IGNORECASE)
_BUILD_KEYS = frozenset({"build", "image", "container_name", "platform"})
_DEVICE_FILE = re.compile(r"/dev/(?:nvidia\w*|dxg|dri|kfd)|nvidia\.com/gpu")


class Service(NamedTuple):
    name: str
    place: FileLine
    image: str
    """Empty if the service is built; with a `$` if it is not known."""
    image_place: FileLine
    build_folder: str
    """The build context; empty if the service is not built."""
    dockerfile: str
    target: str
    build_arguments: tuple[tuple[str, str], ...]
    """Names and values; without those that are not known."""
    grants: tuple[Grant, ...]
    variables: tuple[VariableSetting, ...]
    command: tuple[str, ...]
    health_check: tuple[str, ...]
    """The command that shows whether it works."""
    profiles: tuple[str, ...]
    """It is started only with one of them, if it has any."""
    replaces_program: bool
    """It has an entry point of its own; otherwise the command is the image's own with arguments."""
    has_variable_file: bool
    """`env_file` may set variables that the file does not show."""
    has_default_memory: bool
    """Nothing gives it more shared memory than the 64 MB that Docker gives."""
    extended: str
    """The service that it extends; mostly empty."""
    is_only_built: bool
    """It names the image that it builds, and nothing says how to run it."""
    has_settings: bool
    """Something says how to run it, and not only what to build or to run."""
    gets_more: str
    """What may give it GPUs although the file does not ask for them; mostly empty."""
    commented_grant: FileLine | None


class ComposeFile(NamedTuple):
    path: str
    services: tuple[Service, ...]


def read(path: str, documents: list[Node], content: str) -> ComposeFile:
    found: list[Service] = []
    lines = content.split("\n")
    for document in documents:
        listed = list(entries(document, "services"))
        starts = [place.line for _, _, place in listed]
        for number, (name, node, place) in enumerate(listed, 1):
            end = starts[number] if number < len(starts) else len(lines) + 1
            if isinstance(node, Map):
                found.append(_service(path, name, node, place, lines[place.line : end - 1]))
    return ComposeFile(path, tuple(found))


def _service(path: str, name: str, node: Map, place: FileLine, lines: list[str]) -> Service:
    build = child(node, "build")
    folder = build.value if isinstance(build, Text) else text(build, "context")
    if isinstance(build, Map) and not folder:
        folder = "."
    return Service(
        name=name,
        place=place,
        image=substituted(text(node, "image"), {}),
        image_place=node.key_places.get("image", place),
        build_folder=substituted(folder, {}),
        dockerfile=text(build, "dockerfile"),
        target=text(build, "target"),
        build_arguments=tuple(
            (setting.name, setting.known)
            for setting in _variables_in(child(build, "args"))
            if setting.known is not None
        ),
        grants=tuple(_grants(node)),
        variables=tuple(_variables(node)),
        command=(*words(child(node, "entrypoint")), *words(child(node, "command"))),
        health_check=words(child(node, "healthcheck", "test")),
        profiles=words(child(node, "profiles")),
        replaces_program=child(node, "entrypoint") is not None,
        has_variable_file=child(node, "env_file") is not None,
        has_default_memory=_has_default_memory(node),
        extended=text(node, "extends", "service") or text(node, "extends"),
        is_only_built=_is_only_built(node),
        has_settings=any(name not in _BUILD_KEYS for name, _, _ in entries(node)),
        gets_more=_gets_more(node),
        commented_grant=_commented(path, lines, place.line + 1),
    )


def _is_only_built(node: Map) -> bool:
    keys = {name for name, _, _ in entries(node)}
    return keys >= {"build", "image"} and keys <= _BUILD_KEYS


def _commented(path: str, lines: list[str], first: int) -> FileLine | None:
    for number, line in enumerate(lines, first):
        if _COMMENTED.search(line):
            return FileLine(path, number, line.strip())
    return None


def _grants(node: Map) -> Iterator[Grant]:
    for device in items(node, "deploy", "resources", "reservations", "devices"):
        yield from _reserved(device)
    for item in items(node, "deploy", "resources", "reservations", "generic_resources"):
        kind = text(item, "discrete_resource_spec", "kind")
        if "gpu" in kind.lower():
            yield Grant(f"generic resource {kind}", item.place)
    if child(node, "device_requests") is not None:
        refused = "compose files have no such key; it is called gpus, or deploy.resources"
        yield Grant("device_requests", node.key_places["device_requests"], refused=refused)
    gpus = child(node, "gpus")
    if gpus is not None:
        yield Grant("gpus", gpus.place, 0 if text(node, "gpus") == "0" else None)
    runtime = child(node, "runtime")
    if isinstance(runtime, Text) and ("nvidia" in runtime.value or "$" in runtime.value):
        yield Grant(f"runtime: {runtime.value}", runtime.place)


def _has_default_memory(node: Map) -> bool:
    if any(child(node, key) is not None for key in ("shm_size", "ipc", "extends")):
        return False
    mounts = (*items(node, "volumes"), *items(node, "tmpfs"))
    named = [item.value if isinstance(item, Text) else text(item, "target") for item in mounts]
    return not any("/dev/shm" in name for name in (*named, text(node, "tmpfs")))


def _gets_more(node: Map) -> str:
    if child(node, "extends") is not None:
        return "it extends another service"
    listed = (*items(node, "devices"), *items(node, "device_cgroup_rules"), *items(node, "volumes"))
    if any(isinstance(item, Text) and _DEVICE_FILE.search(item.value) for item in listed):
        return "it gets device files"
    if any("docker.sock" in item.value for item in listed if isinstance(item, Text)):
        return "it starts other containers, which may get them"
    if any(_GPU_NODE.search(label) for label in _labels(node)):
        return "what reads its labels may give it GPUs"
    if any(
        _GPU_NODE.search(rule) for rule in words(child(node, "deploy", "placement", "constraints"))
    ):
        return "it runs on nodes with GPUs, whose runtime may give it all of them"
    return "it is privileged" if text(node, "privileged") == "true" else ""


def _labels(node: Map) -> Iterator[str]:
    """The names of the labels; platforms that run compose files read them."""
    labels = child(node, "labels")
    yield from (name for name, _, _ in entries(labels))
    yield from (
        item.value.partition("=")[0] for item in items(node, "labels") if isinstance(item, Text)
    )


def _reserved(device: Node) -> Iterator[Grant]:
    listed = {item.value for item in items(device, "capabilities") if isinstance(item, Text)}
    # [[gpu]] is the form of Docker's own interface.
    for inner in items(device, "capabilities"):
        if isinstance(inner, Items):
            listed |= {item.value for item in inner.nodes if isinstance(item, Text)}
    count = text(device, "count")
    ids = len(items(device, "device_ids")) or None
    known = whole_number(count) if count.isdecimal() else ids
    driver = text(device, "driver")
    place = device.place
    if any("$" in word for word in (*listed, count, driver)):
        yield Grant("a reservation with a variable in it", place)
    elif listed & {"gpu", "nvidia", "compute", "cuda"}:
        yield Grant("a reservation of GPUs", place, known)
    elif not listed:
        refused = "a reservation without capabilities is an error: capabilities: [gpu] is missing"
        yield Grant("a reservation of devices", place, known, refused)
    elif driver in ("nvidia", ""):
        refused = f"its capabilities are {', '.join(sorted(listed))}, without gpu"
        yield Grant("a reservation of devices", place, known, refused)


def _variables(node: Map) -> Iterator[VariableSetting]:
    yield from _variables_in(child(node, "environment"))


def _variables_in(listed: Node | None) -> Iterator[VariableSetting]:
    """Written as a map, or as a list of NAME=value."""
    if isinstance(listed, Map):
        for name, value, place in entries(listed):
            known = value.value if isinstance(value, Text) else None
            yield VariableSetting(name, None if known is None else _known(known), place)
    elif isinstance(listed, Items):
        for item in listed.nodes:
            if isinstance(item, Text):
                name, has_value, written = item.value.partition("=")
                yield VariableSetting(name, _known(written) if has_value else None, item.place)


def _known(value: str) -> str | None:
    """The value; the default of a variable counts, as in ${GPU:-0}."""
    replaced = substituted(value, {})
    return None if "$" in replaced else replaced
