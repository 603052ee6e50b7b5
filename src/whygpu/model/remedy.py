"""What a remedy does, as data. `model/commands.py` writes it as a command, with every value quoted.

A cause never builds shell text from a value that it has read. Such a value comes from a log, a
snapshot or a package's metadata, so its author could choose what the user's shell runs.
"""

from __future__ import annotations

import shlex
from typing import Literal, NamedTuple, get_args

ArgumentKind = Literal["path", "name", "number", "requirement", "python"]


class Argument(NamedTuple):
    """A value that was read somewhere, and the kind that it must have. If it does not, there is no
    command.

    Names and numbers need no quotes, so they may be inside quotes of constant text. Paths and
    requirements are separate words.
    """

    is_a: ArgumentKind
    text: str = ""


PYTHON = Argument("python")
"""The interpreter of the target environment."""


def a_path(text: str) -> Argument:
    """A file or a folder."""
    return Argument("path", text)


def a_name(text: str) -> Argument:
    """A package, a module, a group, a label: letters, digits and . _ + -"""
    return Argument("name", text)


def a_number(value: str | int) -> Argument:
    """A number or a version: digits with dots between them."""
    return Argument("number", str(value))


def a_requirement(text: str) -> Argument:
    """A package with versions, as pip takes it."""
    return Argument("requirement", text)


Word = str | Argument
"""A plain str is trusted text: a constant in the source of whygpu."""


class SetVariable(NamedTuple):
    name: str
    value: str
    kind: Literal["set-variable"] = "set-variable"


class UnsetVariable(NamedTuple):
    names: tuple[str, ...]
    kind: Literal["unset-variable"] = "unset-variable"


class PrependPath(NamedTuple):
    """Add folders to the front of a search path."""

    name: str
    folders: tuple[str, ...]
    kind: Literal["prepend-path"] = "prepend-path"


class DropPath(NamedTuple):
    """Remove a folder from a search path."""

    name: str
    folder: str
    rest: tuple[str, ...]
    """The remaining folders, in order."""
    kind: Literal["drop-path"] = "drop-path"


InstallOption = Literal[
    "upgrade", "force-reinstall", "no-deps", "only-wheels", "no-build-isolation", "no-cache"
]


class Install(NamedTuple):
    """Install and remove packages in the target environment."""

    requirements: tuple[str, ...]
    index_url: str = ""
    """A package index other than the default."""
    removes: tuple[str, ...] = ()
    """Packages to remove first."""
    options: tuple[InstallOption, ...] = ()
    kind: Literal["install"] = "install"


PlannedFramework = Literal["tensorflow", "jax", "torch", "onnxruntime"]


class InstallFramework(NamedTuple):
    """A wish: the release of a framework that can use the GPU of the machine in question.

    Causes do not know which release that is. The planner does. It replaces the wish with an
    Install, or removes it if no release fits (`planner/remedies.py`).
    """

    framework: PlannedFramework
    installed: str = ""
    """The installed release. The planner keeps it if it works, or else its major number."""
    removes: tuple[str, ...] = ()
    options: tuple[InstallOption, ...] = ()
    newer: bool = False
    """Only a release newer than the installed one works."""
    python: str = ""
    """The Python of the environment and its platform, if the evidence shows them: 3.12."""
    platform: str = ""
    kind: Literal["install-framework"] = "install-framework"


class Pip(NamedTuple):
    """A query to the target's installer: pip check, pip list."""

    words: tuple[str, ...]
    kind: Literal["pip"] = "pip"


class LinkFile(NamedTuple):
    """Create symbolic links to files in a folder, under the same names or one other name."""

    sources: tuple[str, ...]
    into: str
    """The folder."""
    name: str = ""
    """The link's name, if it differs from the file's."""
    kind: Literal["link-file"] = "link-file"


class Command(NamedTuple):
    """One program with its arguments."""

    argv: tuple[Word, ...]
    needs_root: bool = False
    kind: Literal["command"] = "command"


class Script(NamedTuple):
    """Constant shell text, such as a pipeline, with outside values as arguments in between."""

    parts: tuple[Word, ...]
    everywhere: bool = False
    """PowerShell takes the same text."""
    kind: Literal["script"] = "script"


Step = (
    SetVariable
    | UnsetVariable
    | PrependPath
    | DropPath
    | Install
    | InstallFramework
    | Pip
    | LinkFile
    | Command
    | Script
)


STEPS = get_args(Step)


class Steps(NamedTuple):
    """Several steps. Each runs only if the one before it succeeded."""

    steps: tuple[Step, ...]
    kind: Literal["steps"] = "steps"


Action = Step | Steps


def steps_of(action: Action | None) -> tuple[Step, ...]:
    if action is None:
        return ()
    return action.steps if isinstance(action, Steps) else (action,)


def set_variables(**values: str) -> Steps:
    return Steps(tuple(SetVariable(name, value) for name, value in values.items()))


def command_line(*parts: Word) -> Command:
    """A command as typed: command_line("sudo nvidia-smi -c DEFAULT -i", a_number(0))."""
    words: list[Word] = []
    for part in parts:
        words += shlex.split(part) if isinstance(part, str) else [part]
    needs_root = words[0] == "sudo"
    return Command(tuple(words[1:] if needs_root else words), needs_root)


def shell_script(*parts: Word, everywhere: bool = False) -> Script:
    """Shell text as typed: shell_script("ls -l ", a_path(folder), " | grep libcuda")."""
    return Script(parts, everywhere)
