"""YAML with its lines, read by PyYAML (the extra `infra`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Union

from whygpu.model.requirement_file import FileLine

MOST_NODES = 200_000
"""Anchors that contain anchors can describe more nodes than a machine can hold."""
_TEMPLATE = re.compile(
    r"\{\{-?\s{0,9}(?:[.$]|if\b|range\b|with\b|include\b|template\b|toYaml\b|define\b|end\b|else\b)"
    r"|\{%"
)
"""Argo's "{{inputs.parameters.x}}" is filled in later, in a file that is valid YAML."""


class NotYaml(ValueError):
    """The text cannot be read; the message says why."""


class NoYamlReader(Exception):
    """PyYAML is not installed."""


class Text:
    """A scalar."""

    __slots__ = ("is_block", "place", "value")

    def __init__(self, value: str, place: FileLine, *, is_block: bool = False) -> None:
        self.value = value
        self.place = place
        self.is_block = is_block
        """Its lines begin below its place, as after `run: |`."""


class Map:
    """A mapping; of a key that is there twice, the last value counts."""

    __slots__ = ("entries", "key_places", "place")

    def __init__(self, place: FileLine) -> None:
        self.place = place
        self.entries: dict[str, Node] = {}
        self.key_places: dict[str, FileLine] = {}


class Items:
    """A sequence."""

    __slots__ = ("nodes", "place")

    def __init__(self, place: FileLine) -> None:
        self.place = place
        self.nodes: list[Node] = []


Node = Union[Text, Map, Items]


def is_template(text: str) -> bool:
    """Whether a program such as Helm must fill it in before it is YAML."""
    return bool(_TEMPLATE.search(text))


def load(path: str, text: str) -> list[Node]:
    """The documents of a file. Raises NotYaml, or NoYamlReader."""
    if find_spec("yaml") is None:
        raise NoYamlReader
    import yaml

    try:
        composed = list(yaml.compose_all(text, Loader=_loader()))
    except yaml.YAMLError as error:
        raise NotYaml(_message(error)) from error
    except (ValueError, RecursionError) as error:
        raise NotYaml(str(error) or "it is nested too deeply") from error
    maker = _Maker(path, text.split("\n"))
    return [maker.made(node) for node in composed if node is not None]


@lru_cache(maxsize=1)
def _loader() -> Any:
    """A loader that does not look for numbers and dates among the scalars: all stay texts."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def resolve(self, kind: object, value: object, implicit: object) -> str:
            return ""

        def descend_resolver(self, current_node: object, current_index: object) -> None:
            pass

        def ascend_resolver(self) -> None:
            pass

    return Loader


def _message(error: Exception) -> str:
    problem = getattr(error, "problem", None) or "it is not valid YAML"
    mark = getattr(error, "problem_mark", None)
    return f"{problem} (line {mark.line + 1})" if mark is not None else str(problem)


class _Maker:
    def __init__(self, path: str, lines: list[str]) -> None:
        import yaml

        self._path = path
        self._lines = lines
        self._count = 0
        self._places: dict[int, FileLine] = {}
        self._mapping, self._sequence = yaml.MappingNode, yaml.SequenceNode
        self._scalar = yaml.ScalarNode

    def _place(self, node: object) -> FileLine:
        """The line of a node; those of one line share it."""
        number: int = node.start_mark.line  # type: ignore[attr-defined]
        known = self._places.get(number)
        if known is None:
            text = self._lines[number] if number < len(self._lines) else ""
            known = self._places[number] = FileLine(self._path, number + 1, text.strip())
        return known

    def made(self, node: object, depth: int = 0) -> Node:
        self._count += 1
        if self._count > MOST_NODES or depth > 100:
            raise NotYaml("it describes too many nodes")
        place = self._place(node)
        if isinstance(node, self._mapping):
            made = Map(place)
            for key, value in node.value:
                if not isinstance(key, self._scalar):
                    continue
                child = self.made(value, depth + 1)
                if key.value == "<<":
                    for merged in child.nodes if isinstance(child, Items) else [child]:
                        if isinstance(merged, Map):
                            made.entries = {**merged.entries, **made.entries}
                            made.key_places = {**merged.key_places, **made.key_places}
                    continue
                made.entries[key.value] = child
                made.key_places[key.value] = self._place(key)
            return made
        if isinstance(node, self._sequence):
            items = Items(place)
            items.nodes = [self.made(item, depth + 1) for item in node.value]
            return items
        is_block = getattr(node, "style", None) in ("|", ">")
        return Text(str(getattr(node, "value", "")), place, is_block=is_block)


def child(node: Node | None, *keys: str) -> Node | None:
    """The node below some keys; None if it is not there."""
    for key in keys:
        if not isinstance(node, Map):
            return None
        node = node.entries.get(key)
    return node


def text(node: Node | None, *keys: str) -> str:
    """The scalar below some keys; empty if it is not there."""
    found = child(node, *keys)
    return found.value if isinstance(found, Text) else ""


def items(node: Node | None, *keys: str) -> list[Node]:
    """The items of the sequence below some keys."""
    found = child(node, *keys)
    return found.nodes if isinstance(found, Items) else []


def entries(node: Node | None, *keys: str) -> Iterator[tuple[str, Node, FileLine]]:
    """The keys, values and lines of the mapping below some keys."""
    found = child(node, *keys)
    if isinstance(found, Map):
        for key, value in found.entries.items():
            yield key, value, found.key_places[key]


def words(node: Node | None) -> tuple[str, ...]:
    """A command: a list of words, or one text."""
    if isinstance(node, Items):
        return tuple(item.value for item in node.nodes if isinstance(item, Text))
    return tuple(node.value.split()) if isinstance(node, Text) else ()
