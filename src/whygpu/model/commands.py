"""Writes an action as text for a shell. Every value is quoted or, if unsafe, rejected.

The text is for a POSIX shell, or for PowerShell if the target is on Windows. An action that has no
meaning on the target's system, such as `ldconfig` on a Mac, has no text.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from whygpu.model.finding import Remedy
from whygpu.model.lazy_regex import late
from whygpu.model.observed import Known
from whygpu.model.project_commands import note_on_manager, project_commands
from whygpu.model.remedy import (
    Action,
    Argument,
    Command,
    DropPath,
    Install,
    InstallFramework,
    LinkFile,
    Pip,
    PrependPath,
    Script,
    SetVariable,
    Step,
    UnsetVariable,
    Word,
    steps_of,
)
from whygpu.model.shell import Shell, for_windows, quoted
from whygpu.model.target import PLAIN_PIP, Installer

LONGEST_VALUE = 4096
_NAME = late(r"[A-Za-z0-9_](?:[A-Za-z0-9_.+-]{0,198}[A-Za-z0-9_+])?")
_PACKAGE = late(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?")
_NUMBER = late(r"\d{1,20}(?:\.\d{1,20}){0,5}")
_INTERPRETER = late(r"(?:python|pypy)[0-9.]{0,8}[a-z]{0,2}")
_WINDOWS_INTERPRETER = late(
    r"(?:[A-Za-z]:|~)(?:\\[\w.+-][\w .+-]{0,99}){0,40}\\(?:python|pypy)[0-9.]{0,8}[a-z]{0,2}\.exe"
)
_VARIABLE = late(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_INDEX = late(r"https://[A-Za-z0-9.-]{1,100}(?:/[A-Za-z0-9_.-]{1,100}){0,8}/?")
_PLAIN_IN_POWERSHELL = late(r"[A-Za-z0-9_./:=+-]+")
_SPECIAL_IN_POWERSHELL = late(r'["$`%^!\\\u2018-\u201f]')
"""Double quotes work in PowerShell and in cmd, but these characters keep a meaning in them."""
_ON_WINDOWS = (
    *("compute-sanitizer", "conda", "docker", "kubectl", "nvidia-smi", "python", "tf_upgrade_v2"),
    *("uv", "where.exe", "whygpu", "winget", "wsl"),
)
"""Programs of remedies that Windows has, or can have."""
_NOT_ON_A_MAC = late(
    r"\b(?:ldconfig|ldd|dmesg|nvidia-smi|modprobe|systemctl|apt(?:-get)?|rocminfo|winget|wsl)\b"
    r"|\bsudo\b|/dev/|/proc/|/usr/local/cuda|LD_LIBRARY_PATH|\bCUDA_"
)
"""Programs, files and variables of Linux and of NVIDIA's driver, which a Mac does not have."""
_SPECIAL_IN_DOUBLE_QUOTES = late(r'["$`\\!]')
"""`!` because an interactive bash expands it there."""
_OPTIONS = {
    "upgrade": ("--upgrade",),
    "force-reinstall": ("--force-reinstall",),
    "no-deps": ("--no-deps",),
    "only-wheels": ("--only-binary", ":all:"),
    "no-build-isolation": ("--no-build-isolation",),
    "no-cache": ("--no-cache-dir",),
}


_MANAGED = (
    " pip refuses to change this Python, which belongs to the operating system: install into a "
    "virtual environment (python3 -m venv), or add its option --break-system-packages."
)


_NO_PIP = (
    " This environment has no pip: ensurepip, which comes with Python{in_debian}, installs it "
    "first."
)
_IN_DEBIAN = " (in Debian and Ubuntu with the package python3-venv)"


class _Unfit(ValueError):
    """A value is not of the kind that its position requires."""


def shell_text(action: Action | None, installer: Installer = PLAIN_PIP) -> str | None:
    """The command to paste; None if there is none, or if a value is not safe in a command."""
    if action is None:
        return None
    try:
        texts = [_step(step, installer) for step in _merged(steps_of(action))]
    except _Unfit:
        return None
    text = _in_sequence(texts, installer)
    if installer.system == "darwin" and _NOT_ON_A_MAC.search(text):
        return None
    return text or None


def shell_texts(
    actions: Iterable[Action], installer: Installer, shell: Shell = "posix"
) -> tuple[str, ...]:
    """The commands of several actions, each once."""
    texts = [text for action in actions if (text := shell_text(action, installer)) is not None]
    if shell == "windows" and installer.system != "windows":
        texts = [translated for text in texts if (translated := for_windows(text)) is not None]
    return tuple(dict.fromkeys(texts))


def remedy_text(remedy: Remedy, installer: Installer) -> str:
    """The text of a remedy, with notes on installations into this target."""
    installs = [step for step in steps_of(remedy.action) if isinstance(step, Install)]
    return remedy.text + (note_on_install(installs[0], installer) if installs else "")


def note_on_install(step: Install, installer: Installer) -> str:
    """What prevents the command on this target, or what may undo it; empty if nothing does."""
    if installer.externally_managed:
        return _MANAGED
    no_pip = ""
    if _lacks_pip(installer) and _by_manager(step, installer) is None:
        no_pip = _NO_PIP.format(in_debian=_IN_DEBIAN if installer.system == "linux" else "")
    manager = installer.manager
    return no_pip + (note_on_manager(step, manager.value) if isinstance(manager, Known) else "")


_SIMPLE_REQUIREMENT = late(
    r"[A-Za-z0-9]+(?:[._-]+[A-Za-z0-9]+)*(?:\[[a-z0-9]+(?:-[a-z0-9]+)*\])?"
    r"(?:(?:==|!=|>=|<=|>|<)[0-9]+(?:\.[0-9]+)*)?"
)
"""jax[cuda12]==0.7.1."""


def is_requirement(text: str) -> bool:
    """Whether this is a package with versions, and not an address or an option of pip."""
    if _SIMPLE_REQUIREMENT.fullmatch(text):
        # Nearly all are, and importing the parser takes a tenth of the time of a check.
        return True
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        parsed = Requirement(text)
    except (InvalidRequirement, RecursionError):
        return False
    return text.isprintable() and parsed.url is None and parsed.marker is None


def _step(step: Any, installer: Installer) -> str:
    if installer.system == "windows" and isinstance(step, (PrependPath, DropPath, LinkFile)):
        raise _Unfit("Windows has another way to find libraries")
    return _WRITERS[type(step)](step, installer)


def _in_sequence(texts: Sequence[str], installer: Installer) -> str:
    """Each command runs only if the one before it succeeded."""
    if installer.system != "windows":
        return " && ".join(texts)
    text = ""
    for command in reversed(texts):
        # PowerShell has && only since its release 7.
        text = f"{command}; if ($?) {{ {text} }}" if text else command
    return text


def _word(text: str, installer: Installer) -> str:
    if installer.system != "windows":
        return shlex.quote(text)
    if _PLAIN_IN_POWERSHELL.fullmatch(text):
        return text
    if _SPECIAL_IN_POWERSHELL.search(text) or not text.isprintable():
        raise _Unfit(text)
    return f'"{text}"'


def _merged(steps: Iterable[Step]) -> list[Step | tuple[SetVariable, ...]]:
    """Consecutive variables share one `export`."""
    merged: list[Any] = []
    for step in steps:
        if isinstance(step, SetVariable) and merged and type(merged[-1]) is tuple:
            merged[-1] = (*merged[-1], step)
        else:
            merged.append((step,) if isinstance(step, SetVariable) else step)
    return merged


def _set_variables(steps: tuple[SetVariable, ...], installer: Installer) -> str:
    if installer.system == "windows":
        return "; ".join(f"$env:{_variable(name)} = {_literal(value)}" for name, value, _ in steps)
    pairs = (f"{_variable(step.name)}={shlex.quote(_printable(step.value))}" for step in steps)
    return f"export {' '.join(pairs)}"


def _literal(value: str) -> str:
    """A string in which PowerShell replaces nothing."""
    if _SPECIAL_IN_POWERSHELL.search(_printable(value)) or "'" in value:
        raise _Unfit(value)
    return f"'{value}'"


def _unset(step: UnsetVariable, installer: Installer) -> str:
    if installer.system == "windows":
        return "; ".join(f"Remove-Item Env:{_variable(name)}" for name in step.names)
    return f"unset {' '.join(_variable(name) for name in step.names)}"


def _prepend(step: PrependPath, _: Installer) -> str:
    name = _variable(step.name)
    before = _search_list(dict.fromkeys(step.folders), f"${{{name}:+:${name}}}")
    return f"export {name}={before}"


def _drop(step: DropPath, _: Installer) -> str:
    name = _variable(step.name)
    if not any(step.rest):
        return f"unset {name}"
    return f"export {name}={_search_list(step.rest)}"


def _search_list(folders: Iterable[str], after: str = "") -> str:
    """Folders joined by colons. `after` is constant shell text that goes into double quotes."""
    items = [_path(folder, may_be_empty=True) for folder in folders]
    if any(":" in item for item in items):
        raise _Unfit("a colon would split the folder in two")
    joined = ":".join(items)
    if not _SPECIAL_IN_DOUBLE_QUOTES.search(joined):
        homes = [f"$HOME{item[1:]}" if _in_home(item) else item for item in items]
        return f'"{":".join(homes)}{after}"'
    pieces = [f'"$HOME"{_quoted(item[1:])}' if _in_home(item) else _quoted(item) for item in items]
    return ":".join(pieces) + (f'"{after}"' if after else "")


def _install(step: Install, installer: Installer) -> str:
    if not step.requirements and not step.removes:
        raise _Unfit("nothing to install")
    by_manager = _by_manager(step, installer)
    if by_manager is None:
        return _pip_install(step, installer)
    for name in step.removes:
        _matching(_PACKAGE, name)
    if step.index_url:
        _matching(_INDEX, step.index_url)
    return _in_sequence([_words(words, installer) for words in by_manager], installer)


def _by_manager(step: Install, installer: Installer) -> tuple[tuple[Word, ...], ...] | None:
    manager = installer.manager
    return project_commands(step, manager.value) if isinstance(manager, Known) else None


def _pip_install(step: Install, installer: Installer) -> str:
    commands = []
    if step.removes:
        # Do not ask for confirmation if the packages are installed again at once.
        sure = ("-y",) if step.requirements and installer.tool == "pip" else ()
        names = [_matching(_PACKAGE, name) for name in step.removes]
        commands.append(_pip_words(("uninstall", *sure, *names), installer))
    if step.requirements:
        commands.append(_pip_words(install_words(step), installer))
    return _in_sequence((*_pip_first(installer), *commands), installer)


def install_words(step: Install) -> tuple[str, ...]:
    """What pip is asked to install. ValueError if a value is not safe."""
    wanted = [_requirement(text) for text in step.requirements]
    options = [word for option in step.options for word in _OPTIONS[option]]
    index = ("--index-url", _matching(_INDEX, step.index_url)) if step.index_url else ()
    return ("install", *options, *wanted, *index)


def _lacks_pip(installer: Installer) -> bool:
    """The operating system's own Python gets pip from its packages, not from ensurepip."""
    return installer.tool == "pip" and not installer.has_pip and not installer.externally_managed


def _pip_first(installer: Installer) -> tuple[str, ...]:
    if not _lacks_pip(installer):
        return ()
    return (f"{_python(installer, starts=True)} -m ensurepip --upgrade",)


def _pip_words(words: tuple[str, ...], installer: Installer) -> str:
    python = _python(installer, starts=installer.tool == "pip")
    verb, *rest = (_word(word, installer) for word in words)
    if installer.tool == "uv":
        return " ".join(("uv pip", verb, "--python", python, *rest))
    return " ".join((python, "-m pip", verb, *rest))


def _pip(step: Pip, installer: Installer) -> str:
    return _in_sequence((*_pip_first(installer), _pip_words(step.words, installer)), installer)


def _wish(step: InstallFramework, _: Installer) -> str:
    raise _Unfit("the planner has not been asked which release this is")


def _link(step: LinkFile, _: Installer) -> str:
    sources = " ".join(_word_of_path(source) for source in step.sources)
    if not step.name:
        return f"ln -s {sources} {_word_of_path(posixpath.join(step.into, ''))}"
    name = _path(step.name)
    if "/" in name or name in (".", ".."):
        raise _Unfit(name)
    return f"ln -s {sources} {_word_of_path(posixpath.join(step.into, name))}"


def _command(step: Command, installer: Installer) -> str:
    program = step.argv[0]
    if installer.system == "windows" and (
        step.needs_root or (isinstance(program, str) and program not in _ON_WINDOWS)
    ):
        raise _Unfit(f"{program} is not a program of Windows")
    words = _words(step.argv, installer)
    return f"sudo {words}" if step.needs_root else words


def _words(words: Iterable[Word], installer: Installer) -> str:
    return " ".join(
        _argument(word, installer, starts=index == 0)
        if isinstance(word, Argument)
        else _word(word, installer)
        for index, word in enumerate(words)
    )


def _script(step: Script, installer: Installer) -> str:
    if installer.system == "windows" and not step.everywhere:
        raise _Unfit("text for a POSIX shell")
    return "".join(
        _argument(part, installer, starts=index == 0) if isinstance(part, Argument) else part
        for index, part in enumerate(step.parts)
    )


def _argument(argument: Argument, installer: Installer, *, starts: bool) -> str:
    if argument.is_a == "python":
        return _python(installer, starts=starts)
    if argument.is_a == "path":
        if installer.system == "windows":
            raise _Unfit("a path of a POSIX system")
        return _word_of_path(argument.text)
    if argument.is_a == "requirement":
        return _word(_requirement(argument.text), installer)
    return _matching(_NAME if argument.is_a == "name" else _NUMBER, argument.text)


def _requirement(text: str) -> str:
    if not is_requirement(text):
        raise _Unfit(text)
    return text


def _python(installer: Installer, *, starts: bool = False) -> str:
    """The interpreter by a name on PATH, or by its whole path. Only a Python is accepted.

    `starts`: it is the program that the command starts, and not an argument.
    """
    if installer.system == "windows" and "\\" in installer.python:
        return _windows_python(installer.python, starts=starts)
    folder, _, name = installer.python.rpartition("/")
    _matching(_INTERPRETER, name)
    if folder and not folder.startswith(("/", "~")):
        raise _Unfit(folder)
    return _word_of_path(installer.python)


def _windows_python(text: str, *, starts: bool) -> str:
    """A path for PowerShell, where a quoted one is a program only after `&`."""
    path = _matching(_WINDOWS_INTERPRETER, text)
    if path.startswith("~"):
        path = f"$HOME{path[1:]}"
    elif " " not in path:
        return path
    return f'& "{path}"' if starts else f'"{path}"'


def _word_of_path(text: str) -> str:
    """A path as one shell word. A leading ~ (an anonymised home folder) stays unquoted."""
    path = _path(text)
    return path if path == "~" else quoted(path)


def _in_home(path: str) -> bool:
    return path == "~" or path.startswith("~/")


def _path(text: str, *, may_be_empty: bool = False) -> str:
    path = _printable(text)
    if path.startswith("-") or not (path or may_be_empty):
        raise _Unfit(text)
    return path


def _printable(text: str) -> str:
    """No line break (it would end the command), terminal control or invisible character."""
    if not text.isprintable() or "\N{REPLACEMENT CHARACTER}" in text or len(text) > LONGEST_VALUE:
        raise _Unfit(text)
    return text


def _variable(name: str) -> str:
    return _matching(_VARIABLE, name)


def _matching(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise _Unfit(text)
    return text


def _quoted(text: str) -> str:
    return shlex.quote(text) if text else ""


_WRITERS: dict[type, Callable[[Any, Installer], str]] = {
    tuple: _set_variables,
    SetVariable: lambda step, installer: _set_variables((step,), installer),
    UnsetVariable: _unset,
    PrependPath: _prepend,
    DropPath: _drop,
    Install: _install,
    InstallFramework: _wish,
    Pip: _pip,
    LinkFile: _link,
    Command: _command,
    Script: _script,
}
