"""The published schema of SARIF 2.1.0, which is too large to be kept here."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pytest
from jsonschema import Draft7Validator

VARIABLE = "WHYGPU_SARIF_SCHEMA"


def obeys_sarif(data: Any) -> None:
    path = os.environ.get(VARIABLE)
    if path is None:
        pytest.skip(f"{VARIABLE} does not name the file sarif-schema-2.1.0.json of OASIS")
    schema = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    Draft7Validator(schema).validate(data)
