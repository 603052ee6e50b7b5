"""The settings that `whygpu run` hands to every process below it, in one JSON file.

Keys: `policy` (what was asked for, see policy_*.py), `trace`, `tf1` (both true or false),
`report_folder` (where records go), `launcher_pid` (the process that will read and remove them).
"""

import json
import os

VARIABLE = "WHYGPU_BOOTSTRAP_SETTINGS"


def load():
    """The settings; None where the run that wrote them has ended and taken them along."""
    try:
        with open(os.environ[VARIABLE], encoding="utf-8") as file:
            return json.load(file)
    except (KeyError, OSError, ValueError):
        return None
