"""The schemas of what whygpu prints, each read once: checking one takes longer than its use.

The examples of all causes are one machine with small changes, so most parts of their reports are
equal. A part that obeyed a definition of its schema once is not validated against it again.
"""

from __future__ import annotations

import functools
import json
import pathlib
from collections.abc import Iterator
from typing import Any

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

import whygpu

SCHEMAS = sorted((pathlib.Path(whygpu.__path__[0]) / "schemas").glob("*.schema.json"))


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    (path,) = (path for path in SCHEMAS if path.name == f"{name}.schema.json")
    obeyed: set[int] = set()
    checked = Draft202012Validator.VALIDATORS["$ref"]

    def reference(rules: Any, to: str, part: Any, schema: Any) -> Iterator[ValidationError]:
        key = hash((to, json.dumps(part)))
        if key not in obeyed:
            errors = list(checked(rules, to, part, schema))
            if not errors:
                obeyed.add(key)
            yield from errors

    kind = extend(Draft202012Validator, {"$ref": reference})  # type: ignore[no-untyped-call]
    validator: Draft202012Validator = kind(json.loads(path.read_text()))
    return validator


def obeys(name: str, data: Any) -> None:
    """Fails, with the place and the rule, where the data is not what the schema promises."""
    _validator(name).validate(data)
