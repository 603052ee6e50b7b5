"""Settings with which an installer that works in the copy would change something outside of it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping

from whygpu.model.observed import Known
from whygpu.model.target import Interpreter

_TIME_LIMIT = 30.0
_SETTING = re.compile(r"^(?:global|install|uninstall)\.(target|prefix|root|python)=(.*)$", re.M)


def pip_setting(python: str, environ: Mapping[str, str]) -> str:
    """The line of pip's configuration that makes it install elsewhere; empty if there is none."""
    try:
        listed = subprocess.run(
            [python, "-m", "pip", "config", "list"],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIME_LIMIT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _SETTING.search(listed.stdout.decode("utf-8", "replace"))
    return found[0] if found else ""


def user_packages(interpreter: Interpreter) -> str:
    """The folder of the user's own packages, if pip would change them from this environment.

    In a virtual environment, pip changes nothing outside of it. In a conda environment, it removes
    a package of the user before it installs another version.
    """
    site = interpreter.user_site
    if os.path.exists(os.path.join(interpreter.prefix, "pyvenv.cfg")) or not isinstance(
        site, Known
    ):
        return ""
    try:
        names = os.listdir(site.value)
    except OSError:
        return ""
    return site.value if any(name.endswith((".dist-info", ".egg-info")) for name in names) else ""
