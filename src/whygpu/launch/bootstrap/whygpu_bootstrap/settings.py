"""The settings that `whygpu run` hands to every process below it, in one JSON file.

Keys: `policy` (what was asked for, see policy/), `trace`, `tf1` (both true or false). Records
go into the folder `reports` beside the file. That path is not in the file: the variable holds it as
the operating system does, whatever the characters in it and the locale.
"""

import os

from whygpu_bootstrap import plain_json

VARIABLE = "WHYGPU_BOOTSTRAP_SETTINGS"
LARGEST = 1 << 20


def report_folder():
    """Where records go; None where there is no run, or it has ended and taken the folder along."""
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    folder = os.path.join(os.path.dirname(path), "reports")
    return folder if os.path.isdir(folder) else None


def load():
    """The settings. Raises OSError or ValueError where they cannot be read."""
    with open(os.environ[VARIABLE], "rb") as file:
        return plain_json.loads(file.read(LARGEST).decode("ascii"))
