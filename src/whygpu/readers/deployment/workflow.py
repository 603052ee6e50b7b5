"""Reads workflows of GitHub Actions and GitLab CI: runner, image and commands of each job."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from whygpu.model.deployment import Grant, ShellCommand, VariableSetting
from whygpu.model.requirement_file import FileLine
from whygpu.readers.deployment.shell_words import NumberedLine, commands
from whygpu.readers.deployment.yaml_tree import Items, Map, Node, Text, child, entries, items, text

_HOSTED = re.compile(
    r"(?:ubuntu|windows|macos)-(?:latest|\d[\w.]*)(?:-(?:arm|intel|large|xlarge))?"
)
"""Labels of GitHub's own machines, which have no GPU; those with one have names of their owners."""
_GRANTS = re.compile(r"--gpus\b|--runtime[= ]nvidia|--device[= ]\S*(?:nvidia|dri)|--privileged")
_SCRIPTS = ("before_script", "script", "after_script")
_NOT_JOBS = frozenset(
    """default image services stages variables workflow include cache before_script
    after_script spec pages""".split()  # noqa: SIM905
)


class WorkflowJob(NamedTuple):
    name: str
    place: FileLine
    runner: tuple[str, ...]
    """The labels of the machine; with a `$` if they are not known, empty if there are none."""
    is_hosted: bool
    """It runs on a machine of GitHub, which has no GPU."""
    is_of_gitlab: bool
    """The configuration of its runner decides whether its container gets GPUs."""
    image: str
    """The image of the container that its commands run in; empty if they run in none."""
    image_place: FileLine
    grants: tuple[Grant, ...]
    variables: tuple[VariableSetting, ...]
    commands: tuple[ShellCommand, ...]


def read(path: str, documents: list[Node]) -> tuple[WorkflowJob, ...]:
    found: list[WorkflowJob] = []
    for document in documents:
        if child(document, "jobs") is not None:
            found += _github(path, document)
        else:
            found += _gitlab(path, document)
    return tuple(found)


def _github(path: str, document: Node) -> Iterator[WorkflowJob]:
    for name, node, place in entries(document, "jobs"):
        container = child(node, "container")
        image = container.value if isinstance(container, Text) else text(container, "image")
        runner = _words(child(node, "runs-on"))
        is_hosted = bool(runner) and all(map(_HOSTED.fullmatch, runner))
        yield WorkflowJob(
            name=name,
            place=place,
            runner=runner,
            is_hosted=is_hosted,
            is_of_gitlab=False,
            image=image,
            image_place=container.place if container is not None else place,
            grants=tuple(_grants(container, is_hosted)),
            variables=(*_variables(child(document, "env")), *_variables(child(node, "env"))),
            commands=tuple(
                command
                for step in items(node, "steps")
                if child(step, "if") is None and text(step, "continue-on-error") != "true"
                for command in _commands(path, child(step, "run"))
            ),
        )


def _gitlab(path: str, document: Node) -> Iterator[WorkflowJob]:
    common = child(document, "image") or child(document, "default", "image")
    for name, node, place in entries(document):
        if name in _NOT_JOBS or name.startswith(".") or child(node, "script") is None:
            continue
        image = child(node, "image") or common
        yield WorkflowJob(
            name=name,
            place=place,
            runner=_words(child(node, "tags")),
            is_hosted=False,
            is_of_gitlab=True,
            image=image.value if isinstance(image, Text) else text(image, "name"),
            image_place=image.place if image is not None else place,
            grants=(),
            variables=(
                *_variables(child(document, "variables")),
                *_variables(child(node, "variables")),
            ),
            commands=tuple(
                command for key in _SCRIPTS for command in _commands(path, child(node, key))
            ),
        )


def _words(node: Node | None) -> tuple[str, ...]:
    if isinstance(node, Text):
        return (node.value,)
    if isinstance(node, Map):
        return (*_words(child(node, "group")), *_words(child(node, "labels")))
    return tuple(item.value for item in node.nodes if isinstance(item, Text)) if node else ()


def _grants(container: Node | None, is_hosted: bool) -> Iterator[Grant]:
    options = child(container, "options")
    if isinstance(options, Text) and is_hosted and "--gpus" in options.value:
        refused = "the machines of GitHub have none, and Docker ends the job"
        yield Grant(f"options: {options.value}", options.place, refused=refused)
    elif isinstance(options, Text) and (_GRANTS.search(options.value) or "$" in options.value):
        yield Grant(f"options: {options.value}", options.place)


def _variables(node: Node | None) -> Iterator[VariableSetting]:
    for name, value, place in entries(node):
        known = value.value if isinstance(value, Text) and "$" not in value.value else None
        yield VariableSetting(name, known, place)


def _commands(path: str, node: Node | None) -> tuple[ShellCommand, ...]:
    """The commands of a script: one text, or a list of lines."""
    scripts = node.nodes if isinstance(node, Items) else [node]
    lines: list[NumberedLine] = []
    for script in scripts:
        if isinstance(script, Text):
            first = script.place.line + (1 if script.is_block else 0)
            lines += [NumberedLine(first + n, s) for n, s in enumerate(script.value.split("\n"))]
    return commands(path, lines, {})
