"""The schemas of what whygpu prints, each read once: checking one takes longer than its use."""

from __future__ import annotations

import functools
import json
import pathlib
from typing import Any

from jsonschema import Draft202012Validator

import whygpu

SCHEMAS = sorted((pathlib.Path(whygpu.__path__[0]) / "schemas").glob("*.schema.json"))


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    (path,) = (path for path in SCHEMAS if path.name == f"{name}.schema.json")
    return Draft202012Validator(json.loads(path.read_text()))


def obeys(name: str, data: Any) -> None:
    """Fails, with the place and the rule, where the data is not what the schema promises."""
    _validator(name).validate(data)
