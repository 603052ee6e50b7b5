"""The packages that the commands of a script install, with pip, uv, conda or apt."""

from __future__ import annotations

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
from whygpu.readers.requirement_files.pip_requirement import pip_requirement

_PIP = re.compile(r"^pip(\d(?:\.\d+)?)?")
_PYTHON = re.compile(r"^python(\d(?:\.\d+)?)?")
_CONDA = re.compile(r"^(?:conda|mamba|micromamba)")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=.*", re.DOTALL)
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
    place: FileLine


def plain_words(command: ShellCommand) -> Sequence[str]:
    """The words without the assignments before them."""
    words: Sequence[str] = command.words
    while words and _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    if words[:1] == ("env",):
        return plain_words(command._replace(words=tuple(words[1:])))
    return words


def package_installs(commands: Sequence[ShellCommand]) -> Iterator[PackageInstall]:
    for command in commands:
        words = list(plain_words(command))
        if not words:
            continue
        if _CONDA.fullmatch(_program(words[0])):
            found = _conda(words, command.place)
            if found is not None:
                yield found
                continue
            # conda run -n name pip install ...
            first = next(
                (n for n, word in enumerate(words) if _PIP.fullmatch(_program(word))), len(words)
            )
            words = words[first:]
        python, arguments = _pip_arguments(words)
        if arguments is not None:
            yield _pip(arguments, python, command.place)


def _pip_arguments(words: list[str]) -> tuple[str, list[str] | None]:
    """The Python that is named, and what follows `pip install`; None for another command."""
    python = ""
    if words and (match := _PYTHON.fullmatch(_program(words[0]))) is not None:
        if "-m" not in words[1:4]:
            return "", None
        python = _minor(match[1])
        words = words[words.index("-m") + 1 :]
    elif words[:1] == ["uv"]:
        words = words[1:]
    match = _PIP.fullmatch(_program(words[0])) if words else None
    if match is None:
        return "", None
    python = python or _minor(match[1])
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[1:]
    return python, rest[1:] if rest[:1] == ["install"] else None


def _program(word: str) -> str:
    return word.rpartition("/")[2]


def _minor(version: str | None) -> str:
    return version if version and "." in version else ""


def _pip(arguments: list[str], python: str, place: FileLine) -> PackageInstall:
    requirements, unread = list[PinnedRequirement](), list[UnreadLine]()
    files, projects, sources = list[str](), list[str](), list[PackageSource]()
    words = iter(arguments)
    for word in words:
        name, has_value, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in ("-r", "--requirement", "--requirements"):
            files.append(value if has_value else next(words, ""))
        elif word.startswith("-r") and len(word) > 2 and word[2] != "-":
            files.append(word[2:])
        elif name in _SOURCES:
            url = value if has_value else next(words, "")
            sources.append(PackageSource(url, _SOURCES[name], place))
        elif name in ("-c", "--constraint", "-e", "--editable"):
            given = value if has_value else next(words, "")
            if name in ("-e", "--editable") and "://" not in given:
                projects.append(given)
        elif name in _WITH_VALUE:
            if not has_value:
                next(words, "")
        elif word.startswith(("-", ">", "<", "2>")):
            continue
        elif word == "." or word.startswith(("./", "../", "/", ".[")):
            if not word.endswith(".whl"):
                projects.append(word.partition("[")[0])
        elif "$" in word:
            unread.append(UnreadLine(place, f"the value of {word} is not known"))
        else:
            found = pip_requirement(word, place._replace(text=word))
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
        place,
    )


def _conda(words: list[str], place: FileLine) -> PackageInstall | None:
    """conda install, conda create, conda env create -f"""
    actions = [word for word in words[1:] if not word.startswith("-")]
    if actions[:2] in (["env", "create"], ["env", "update"]):
        files = tuple(
            words[number + 1] for number, word in enumerate(words[:-1]) if word in ("-f", "--file")
        ) or tuple(word.partition("=")[2] for word in words if word.startswith("--file="))
        return PackageInstall((), files or ("environment.yml",), (), (), "", (), place)
    if actions[:1] not in (["install"], ["create"]):
        return None
    requirements, unread, channel, python = list[PinnedRequirement](), list[UnreadLine](), "", ""
    rest = iter(words[words.index(actions[0]) + 1 :])
    for word in rest:
        if word in ("-c", "--channel"):
            channel = channel or next(rest, "")
        elif word in ("-n", "--name", "-p", "--prefix", "--file"):
            next(rest, "")
        elif word.startswith("-"):
            continue
        elif "$" in word:
            unread.append(UnreadLine(place, f"the value of {word} is not known"))
        else:
            found = conda_requirement(word, place._replace(text=word))
            if isinstance(found, UnreadLine):
                unread.append(found)
            elif found.name == "python":
                match = re.search(r"\d\.\d+", found.specifier)
                python = match[0] if match else ""
            else:
                requirements.append(found._replace(channel=found.channel or channel))
    return PackageInstall(tuple(requirements), (), (), (), python, tuple(unread), place)


_APT = frozenset({"apt-get", "apt", "yum", "dnf", "microdnf", "zypper", "aptitude"})


def system_packages(command: ShellCommand) -> tuple[str, ...]:
    """The packages that `apt-get install` and its like install, without versions."""
    words = plain_words(command)
    if not words or words[0] not in _APT or "install" not in words:
        return ()
    return tuple(
        word.partition("=")[0]
        for word in words[words.index("install") + 1 :]
        if not word.startswith("-") and "$" not in word
    )
