"""Reads a YAML file for lint, and says why it could not be read."""

from __future__ import annotations

from whygpu.readers.deployment import yaml_tree


class NotRead(Exception):
    """A file that belongs to lint, but that could not be read."""

    def __init__(self, message: str, *, is_syntax: bool = True) -> None:
        super().__init__(message)
        self.is_syntax = is_syntax


class IsTemplate(Exception):
    """A file that Helm, Jinja or another program fills in first: it was not checked."""


def documents_of(path: str, text: str) -> list[yaml_tree.Node]:
    try:
        return yaml_tree.load(path, text)
    except yaml_tree.NoYamlReader:
        raise NotRead(
            "it was not checked: pip install 'whygpu[infra]' adds the reader for YAML",
            is_syntax=False,
        ) from None
    except yaml_tree.NotYaml as error:
        raise NotRead(f"it is not valid YAML: {error}") from error
