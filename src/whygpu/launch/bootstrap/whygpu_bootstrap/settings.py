"""The settings that `whygpu run` hands to every process below it, in one JSON file.

Keys: `policy` (what was asked for, see policy_*.py), `trace`, `tf1` (both true or false),
`report_folder` (where records go), `launcher_pid` (the process that will read and remove them).
"""

import os

VARIABLE = "WHYGPU_BOOTSTRAP_SETTINGS"
_JSON = {"__builtins__": {}, "true": True, "false": False, "null": None}


def load():
    """The settings; None where the run that wrote them has ended and taken them along."""
    try:
        with open(os.environ[VARIABLE], encoding="utf-8") as file:
            text = file.read()
    except (KeyError, OSError):
        return None
    # The module json would bring ten others along, and a program may have one of that name. What
    # json writes is Python, too, but for three words.
    return eval(text, dict(_JSON))
