"""Variables that stay: a block in the script that activates the environment."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable, Mapping

from whygpu.fixing.carrying_out import variables_in
from whygpu.model.commands import shell_text
from whygpu.model.remedy import Action, DropPath, PrependPath, SetVariable, Step, steps_of
from whygpu.model.target import Installer

BEGIN = "# >>> whygpu fix >>>"
END = "# <<< whygpu fix <<<"
_CONDA_FILE = "etc/conda/activate.d/whygpu-fix.sh"
_TIME_LIMIT = 20.0


def script_of(prefix: str) -> str | None:
    """The activation script to extend, relative to the environment; None if there is none."""
    if os.path.isdir(os.path.join(prefix, "conda-meta")):
        return _CONDA_FILE
    return "bin/activate" if os.path.isfile(os.path.join(prefix, "bin", "activate")) else None


def variable_steps(actions: Iterable[Action | None]) -> tuple[Step, ...]:
    return tuple(
        step
        for action in actions
        for step in steps_of(action)
        if isinstance(step, (SetVariable, PrependPath, DropPath))
    )


def add_block(prefix: str, script: str, steps: Iterable[Step], installer: Installer) -> None:
    """Write the variables into the script of an environment that is not in use yet."""
    lines = [_line(step, installer) for step in steps]
    path = os.path.join(prefix, script)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    before = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            before = file.read()
    new = f"{path}.whygpu-new"
    with open(new, "x", encoding="utf-8", errors="surrogateescape") as file:
        file.write("\n".join([before.rstrip("\n"), BEGIN, *lines, END, ""]).lstrip("\n"))
    os.replace(new, path)


def _line(step: Step, installer: Installer) -> str:
    if isinstance(step, DropPath):
        return _without(step.name, step.folder)
    text = shell_text(step, installer)
    assert text is not None, "a step without a command is for a person"
    return text


def _without(name: str, folder: str) -> str:
    """Removes the folder from whatever the variable holds when the environment is activated."""
    quoted = shlex.quote(folder)
    return (
        f"{name}=$(printf %s \"${{{name}-}}\" | tr ':' '\\n' | grep -vxF -e {quoted}"
        f" -e {quoted}/ | paste -sd: -); export {name}"
    )


def activated(prefix: str, script: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of a shell that has run the script."""
    path = os.path.join(prefix, script)
    done = subprocess.run(
        ["/bin/sh", "-c", f". {shlex.quote(path)} >/dev/null 2>&1; env -0"],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        timeout=_TIME_LIMIT,
        check=True,
    )
    return variables_in(done.stdout)
