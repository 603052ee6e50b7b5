"""Where whygpu keeps what it remembers of past runs, if the user has asked for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

_RECORDING = "history.on"
"""The file that exists while runs are recorded: looking for it costs next to nothing."""


def state_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> str:
    """The folder for state of the user: as the XDG specification says, or the system's own."""
    home = os.path.expanduser("~")
    if platform == "win32":
        base = environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
    elif platform == "darwin":
        base = os.path.join(home, "Library", "Application Support")
    else:
        base = environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(base):
            # The specification says that a relative path must be ignored.
            base = os.path.join(home, ".local", "state")
    return os.path.join(base, "whygpu")


def is_recording() -> bool:
    return os.path.exists(os.path.join(state_folder(), _RECORDING))


def start_recording(folder: str) -> None:
    """OSError if the folder cannot be created or written to."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    os.close(os.open(os.path.join(folder, _RECORDING), os.O_CREAT | os.O_WRONLY, 0o600))


def stop_recording(folder: str) -> None:
    path = os.path.join(folder, _RECORDING)
    if os.path.lexists(path):
        os.unlink(path)
