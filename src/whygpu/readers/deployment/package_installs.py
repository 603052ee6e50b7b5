"""The packages that the commands of a script install, with pip, uv, conda or apt."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from whygpu.model.deployment import ShellCommand
from whygpu.model.requirement_file import (
    FileLine,
    PackageSource,
    PinnedRequirement,
    SourceRole,
    UnreadLine,
)
from whygpu.readers.requirement_files.conda_environment import conda_requirement
from whygpu.readers.requirement_files.pip_requirement import pip_requirement, wheel_of

_PIP = re.compile(r"^pip(\d(?:\.\d+)?)?")
_PYTHON = re.compile(r"^python(\d(?:\.\d+)?)?")
_CONDA = re.compile(r"^(?:conda|mamba|micromamba)")
_SOURCES: dict[str, SourceRole] = {
    "-i": "index",
    "--index-url": "index",
    "--index": "index",
    "--default-index": "index",
    "--extra-index-url": "extra",
    "-f": "find-links",
    "--find-links": "find-links",
}
_WITH_VALUE = frozenset(
    """-t --target --prefix --root --src --python --python-version --platform --implementation --abi
    --upgrade-strategy --progress-bar --timeout --retries --trusted-host --cert --cache-dir --log
    --proxy --no-binary --only-binary --config-settings --global-option --build-option --report
    -n --name -p --torch-backend --link-mode""".split()  # noqa: SIM905
)


_REPLACING = frozenset(
    {"-U", "--upgrade", "--force-reinstall", "-I", "--ignore-installed", "--pre"}
)


class PackageInstall(NamedTuple):
    """What one command installs."""

    requirements: tuple[PinnedRequirement, ...]
    files: tuple[str, ...]
    """Files of requirements, as they are written."""
    projects: tuple[str, ...]
    """Folders of projects that are installed with their own requirements."""
    sources: tuple[PackageSource, ...]
    python: str
    """The Python that the command names, as in python3.9 -m pip; mostly empty."""
    unread: tuple[UnreadLine, ...]
    locks: tuple[str, ...] = ()
    """Files of the project that say what is installed; the first one that exists counts."""
    keeps_installed: bool = False
    """A package that is there already, and that the requirement allows, stays."""


class _Word(NamedTuple):
    text: str
    place: FileLine


def _plain(command: ShellCommand) -> list[_Word]:
    first = command.first_plain
    return [
        _Word(text, command.place_of(number))
        for number, text in enumerate(command.words[first:], first)
    ]


def package_installs(commands: Sequence[ShellCommand]) -> Iterator[PackageInstall]:
    for command in commands:
        for install in _installs(command):
            yield _unread(command) if command.is_choice else install


def _unread(command: ShellCommand) -> PackageInstall:
    why = UnreadLine(command.place, "whether it is installed depends on a condition")
    return PackageInstall((), (), (), (), "", (why,))


def _installs(command: ShellCommand) -> Iterator[PackageInstall]:
    words = _plain(command)
    if not words:
        return
    if (locks := _locks(words)) is not None:
        yield PackageInstall((), (), (), (), "", (), locks)
        return
    if _CONDA.fullmatch(_program(words[0])):
        found = _conda(words)
        if found is not None:
            yield found
            return
        # conda run -n name pip install ...
        first = next((n for n, w in enumerate(words) if _PIP.fullmatch(_program(w))), None)
        words = words[first:] if first is not None else []
    python, arguments = _pip_arguments(words)
    if arguments is not None:
        yield _pip(arguments, python)


_LOCKED: dict[tuple[str, str], tuple[str, ...]] = {
    ("uv", "sync"): ("uv.lock", "pyproject.toml"),
    ("poetry", "install"): ("poetry.lock", "pyproject.toml"),
    ("pdm", "sync"): ("pdm.lock", "pyproject.toml"),
    ("pdm", "install"): ("pdm.lock", "pyproject.toml"),
    ("pixi", "install"): ("pixi.lock",),
    ("conda-lock", "install"): ("conda-lock.yml",),
}
"""What the commands of project managers install, if nothing selects an optional part."""


def _locks(words: list[_Word]) -> tuple[str, ...] | None:
    actions = [word.text for word in words[1:] if not word.text.startswith("-")]
    known = _LOCKED.get((_program(words[0]), actions[0])) if actions else None
    if known is None:
        return None
    named = [text for text in actions[1:] if text.endswith((".yml", ".yaml"))]
    return (*named, *known)


def _pip_arguments(words: list[_Word]) -> tuple[str, list[_Word] | None]:
    """The Python that is named, and what follows `pip install`; None for another command."""
    python = ""
    texts = [word.text for word in words]
    if words and (match := _PYTHON.fullmatch(_program(words[0]))) is not None:
        if "-m" not in texts[1:4]:
            return "", None
        python = _minor(match[1])
        words = words[texts.index("-m") + 1 :]
    elif texts[:1] == ["uv"]:
        words = words[1:]
    match = _PIP.fullmatch(_program(words[0])) if words else None
    if match is None:
        return "", None
    python = python or _minor(match[1])
    rest = words[1:]
    while rest and rest[0].text.startswith("-"):
        rest = rest[1:]
    return python, rest[1:] if rest and rest[0].text == "install" else None


def _program(word: _Word) -> str:
    return word.text.rpartition("/")[2]


def _minor(version: str | None) -> str:
    return version if version and "." in version else ""


def _pip(arguments: list[_Word], python: str) -> PackageInstall:
    requirements, unread = list[PinnedRequirement](), list[UnreadLine]()
    files, projects, sources = list[str](), list[str](), list[PackageSource]()
    words = iter(arguments)

    def value_of(given: str, has_value: str) -> str:
        return given if has_value else next(words, _NO_WORD).text

    for text, place in words:
        name, has_value, value = text.partition("=") if text.startswith("--") else (text, "", "")
        if name in ("-r", "--requirement", "--requirements"):
            files.append(value_of(value, has_value))
        elif text.startswith("-r") and len(text) > 2 and text[2] != "-":
            files.append(text[2:])
        elif name in _SOURCES:
            sources.append(PackageSource(value_of(value, has_value), _SOURCES[name], place))
        elif name in ("-c", "--constraint", "-e", "--editable"):
            given = value_of(value, has_value)
            if name in ("-e", "--editable") and "://" not in given:
                projects.append(given)
        elif name in _WITH_VALUE:
            value_of(value, has_value)
        elif text.startswith(("-", ">", "<", "2>")):
            continue
        elif text == "." or text.startswith(("./", "../", "/", ".[")):
            if (wheel := wheel_of(text)) is not None:
                # It may be a build of the user's own: then its release says little about it.
                requirements.append(PinnedRequirement(wheel[0], (), "", "", place, url=text))
            elif not text.endswith(".whl"):
                projects.append(text.partition("[")[0])
        elif "$" in text:
            unread.append(UnreadLine(place, f"the value of {text} is not known"))
        else:
            found = pip_requirement(text, place._replace(text=text))
            if isinstance(found, UnreadLine):
                unread.append(found)
            else:
                requirements.append(found)
    given_sources = tuple(sources)
    return PackageInstall(
        tuple(each._replace(sources=given_sources) for each in requirements),
        tuple(files),
        tuple(projects),
        given_sources,
        python,
        tuple(unread),
        keeps_installed=_REPLACING.isdisjoint(word.text for word in arguments),
    )


def _conda(given: list[_Word]) -> PackageInstall | None:
    """conda install, conda create, conda env create -f"""
    words = [word.text for word in given]
    actions = [word for word in words[1:] if not word.startswith("-")]
    if actions[:2] in (["env", "create"], ["env", "update"]):
        return PackageInstall((), _files_of(words) or ("environment.yml",), (), (), "", ())
    if actions[:1] not in (["install"], ["create"]):
        return None
    # micromamba create -f environment.yml. A list in another format has names of conda.
    files = tuple(name for name in _files_of(words) if name.endswith((".yml", ".yaml")))
    requirements, unread, channel, python = list[PinnedRequirement](), list[UnreadLine](), "", ""
    rest = iter(given[words.index(actions[0]) + 1 :])
    for text, place in rest:
        if text in ("-c", "--channel"):
            channel = channel or next(rest, _NO_WORD).text
        elif text in ("-n", "--name", "-p", "--prefix", "-f", "--file"):
            next(rest, _NO_WORD)
        elif text.startswith("-"):
            continue
        elif "$" in text:
            unread.append(UnreadLine(place, f"the value of {text} is not known"))
        else:
            found = conda_requirement(text, place._replace(text=text))
            if isinstance(found, UnreadLine):
                unread.append(found)
            elif found.name == "python":
                match = re.search(r"\d\.\d+", found.specifier)
                python = match[0] if match else ""
            else:
                requirements.append(found._replace(channel=found.channel or channel))
    return PackageInstall(tuple(requirements), files, (), (), python, tuple(unread))


def _files_of(words: Sequence[str]) -> tuple[str, ...]:
    """-f NAME, --file NAME, and both with an equals sign."""
    apart = [b for a, b in itertools.pairwise(words) if a in ("-f", "--file")]
    joined = [word.partition("=")[2] for word in words if word.startswith(("--file=", "-f="))]
    return (*apart, *joined)


def uninstalled(command: ShellCommand) -> frozenset[str]:
    """The packages that `pip uninstall` removes."""
    words = command.plain_words
    if "uninstall" not in words or not any("pip" in word for word in words):
        return frozenset()
    listed = words[words.index("uninstall") + 1 :]
    return frozenset(word.lower().replace("_", "-") for word in listed if word[:1].isalpha())


_NO_WORD = _Word("", FileLine("", 1, ""))
_APT = frozenset({"apt-get", "apt", "yum", "dnf", "microdnf", "zypper", "aptitude"})


def system_packages(command: ShellCommand) -> tuple[str, ...]:
    """The packages that `apt-get install` and its like install, without versions."""
    words = command.plain_words
    if not words or words[0] not in _APT or "install" not in words:
        return ()
    return tuple(
        word.partition("=")[0]
        for word in words[words.index("install") + 1 :]
        if not word.startswith("-") and "$" not in word
    )


_WRITING = frozenset({"cp", "mv", "tee", "install", "ln"})
_LOCKING: dict[str, tuple[str, ...]] = {
    "uv": ("uv.lock", "pyproject.toml"),
    "poetry": ("poetry.lock", "pyproject.toml"),
    "pdm": ("pdm.lock", "pyproject.toml"),
    "pixi": ("pixi.lock",),
}
_LOCKING_ACTIONS = frozenset({"lock", "add", "remove", "update"})


def changed_files(commands: Sequence[ShellCommand]) -> Iterator[str]:
    """The names of files that commands write or edit, without their folders."""
    for command in commands:
        words = command.plain_words
        if not words:
            continue
        program = words[0].rpartition("/")[2]
        if program in _LOCKING and any(word in _LOCKING_ACTIONS for word in words[1:3]):
            yield from _LOCKING[program]
        elif program in ("sed", "perl"):
            if any(word.startswith("-") and "i" in word for word in words[1:]):
                yield words[-1].rpartition("/")[2]
        elif program in _WRITING:
            yield words[-1].rpartition("/")[2]
        for mark, target in itertools.pairwise(words):
            if mark in (">", ">>"):
                yield target.rpartition("/")[2]
        yield from (
            word.lstrip(">").rpartition("/")[2] for word in words if re.match(r">{1,2}\w", word)
        )
