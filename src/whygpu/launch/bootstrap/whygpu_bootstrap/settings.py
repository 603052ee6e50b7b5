"""The settings that `whygpu run` hands to every process below it, in one JSON file.

Its keys are those of RunSettings in model/wire.py: `calls` and `readings` (the rows of
policy/calls.py and policy/readings.py that the plan needs), `trace`, `profile` and `tf1` (true or
false), `profile_from` (a number).
Records go into the folder `reports` beside the file. Its path is not in the file: the variable
holds the path as the operating system does, whatever its characters and the locale.
"""

import os

from whygpu_bootstrap import plain_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VARIABLE = "WHYGPU_BOOTSTRAP_SETTINGS"
LARGEST = 1 << 20


def report_folder() -> "str | None":
    """The folder for records; None if there is no run, or if the run has ended."""
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    folder = os.path.join(os.path.dirname(path), "reports")
    return folder if os.path.isdir(folder) else None


def load() -> "dict[str, Any]":
    """The settings. Raises OSError or ValueError if they cannot be read."""
    with open(os.environ[VARIABLE], "rb") as file:
        return plain_json.loads(file.read(LARGEST).decode("ascii"))
