"""The packages that an image installs, by its own commands, its files and its scripts."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from whygpu.errors import UsageError
from whygpu.linter.project_files import ProjectFiles, load_from
from whygpu.model.deployment import BaseImage, ShellCommand, VariableSetting
from whygpu.model.requirement_file import (
    PackageSource,
    PinnedRequirement,
    SourceRole,
    UnreadLine,
)
from whygpu.readers.deployment.dockerfile import Copy, Dockerfile, Run, Stage
from whygpu.readers.deployment.package_installs import (
    PackageInstall,
    changed_files,
    package_installs,
    uninstalled,
)
from whygpu.readers.deployment.shell_words import NumberedLine, commands
from whygpu.readers.requirement_files import format_of, read_requirements
from whygpu.tables.base_images import base_image

_PYTHON_FOLDERS = re.compile(
    r"venv|site-packages|dist-packages|/usr/local|/opt|\.local|conda|install|/app"
)
_INDEX_VARIABLES: dict[str, SourceRole] = {
    "PIP_INDEX_URL": "index",
    "PIP_EXTRA_INDEX_URL": "extra",
    "UV_INDEX_URL": "index",
    "UV_DEFAULT_INDEX": "index",
    "UV_EXTRA_INDEX_URL": "extra",
}
_EXACT = re.compile(r"==\s*(\d+(?:\.\d+){0,3})(?:\+[\w.]{1,30})?")
_HIGHEST = 3
"""How many folders above a Dockerfile may be its build context."""
_SHELLS = frozenset({"bash", "sh", "dash", "zsh", "source", "."})
_DEEPEST = 2
"""How many scripts may start one another, and through how many stages a file may be copied."""
_INSTALLERS = re.compile(
    r"nodesource|rustup|astral\.sh|python-poetry|bootstrap\.pypa|cloud\.google|nvm-sh|get\.docker"
    r"|ollama|cli\.github|packagecloud|ohmyzsh|oh-my-zsh|starship|rclone|aka\.ms|microsoft|bun\.sh|deno"
    r"|julialang|golang|helm|pixi\.sh|atuin|claude|just\.systems|taskfile|zoxide|fnm|volta"
)
"""Addresses of scripts that install a program of their own, and no Python packages."""


class Built(NamedTuple):
    """The stages that make up an image, from the base to the last one."""

    base: BaseImage | None
    stages: tuple[Stage, ...]


_MOST_SCRIPTS = 200
"""Of one image. Scripts that start one another many times would be read without end."""


def built_stages(dockerfile: Dockerfile, last: Stage) -> Built:
    stages = [last]
    while stages[0].base is not None:
        earlier = dockerfile.stages[: dockerfile.stages.index(stages[0])]
        parent = next((s for s in earlier if s.name and s.name == stages[0].base), None)
        if parent is None:
            break
        stages.insert(0, parent)
    name = stages[0].base
    base = None if name in (None, "scratch") else base_image(str(name), stages[0].place)
    return Built(base, tuple(stages))


class ImageInstalls:
    """The requirements of an image, its own and those of the files that it installs."""

    def __init__(
        self, dockerfile: Dockerfile, built: Built, files: ProjectFiles, context: str | None
    ) -> None:
        self._dockerfile = dockerfile
        self._files = files
        self._contexts = [context] if context is not None else list(contexts(dockerfile.path))
        self._indexes: list[PackageSource] = []
        """Those that variables name."""
        self.all: list[PackageInstall] = []
        self.requirements: list[PinnedRequirement] = []
        self.unknown: list[str] = []
        self.commands: list[ShellCommand] = []
        """Those of its own stages, with those of the scripts that they start."""
        self._changed: set[str] = set()
        """The names of files that commands of the image change."""
        self._scripts_read = 0
        for stage in (*_copied_from(dockerfile, built), *built.stages):
            self._indexes += _indexes(stage.variables)
            for run in stage.runs:
                found = list(self._with_scripts(run.commands, stage, run))
                if stage in built.stages:
                    self.commands += found
                self._changed |= set(changed_files(found))
                for command in found:
                    self._remove(uninstalled(command))
                    for install in package_installs([command]):
                        self._add(install, stage, run)

    def _with_scripts(
        self, listed: Sequence[ShellCommand], stage: Stage, run: Run, depth: int = 0
    ) -> Iterator[ShellCommand]:
        """The commands; for one that starts a script of the project, those of the script."""
        for number, command in enumerate(listed):
            script = _script(command)
            if script is None:
                if _pipes_a_script(command, listed[number - 1] if number else None):
                    self.unknown.append("it runs a script that it downloads")
                yield command
                continue
            self._scripts_read += 1
            if self._scripts_read > _MOST_SCRIPTS:
                self.unknown.append("it runs more scripts than are read")
                yield command
                continue
            path = self._found(script, stage, run)
            text = self._files.read(path) if path is not None else None
            if path is None or text is None or depth == _DEEPEST:
                self.unknown.append(f"{script}, which it runs, was not found")
                yield command
                continue
            lines = [NumberedLine(n, line) for n, line in enumerate(text.split("\n"), 1)]
            inner = commands(path, lines, {}, stops_at_failures=False)
            yield from (
                each._replace(
                    may_fail=each.may_fail or command.may_fail,
                    is_choice=each.is_choice or command.is_choice,
                )
                for each in self._with_scripts(inner, stage, run, depth + 1)
            )

    def _remove(self, names: frozenset[str]) -> None:
        if names:
            self.requirements = [each for each in self.requirements if each.name not in names]

    def _add(self, install: PackageInstall, stage: Stage, run: Run) -> None:
        if self._indexes and not install.sources:
            sources = tuple(self._indexes)
            found = tuple(each._replace(sources=sources) for each in install.requirements)
            install = install._replace(sources=sources, requirements=found)
        self.all.append(install)
        self._require(install.requirements, install)
        self.unknown += [
            f"line {item.place.line} of {item.place.file}: {item.reason}"
            for item in install.unread
            if not _is_another_project(item)
        ]
        for name in install.files:
            self._add_file(name, install, stage, run)
        found_locks = (self._found_lock(name, stage, run) for name in install.locks)
        if (lock := next(filter(None, found_locks), None)) is not None:
            self._read(lock, install)
        for folder in install.projects:
            wanted = f"{folder.rstrip('/')}/pyproject.toml"
            if (path := self._found(wanted, stage, run)) is not None:
                self._read(path, install)
            elif self._found(f"{folder.rstrip('/')}/setup.py", stage, run) is not None:
                self.unknown.append("what setup.py requires is not read")

    def _add_file(self, name: str, install: PackageInstall, stage: Stage, run: Run) -> None:
        path = self._found(name, stage, run)
        if path is None:
            self.unknown.append(f"{name} was not found")
        else:
            self._read(path, install)

    def _found_lock(self, name: str, stage: Stage, run: Run) -> str | None:
        """A file that is copied, or mounted for the one command that needs it."""
        found = self._found(name, stage, run)
        if found is not None or not run.mounts:
            return found
        paths = (os.path.join(context, name) for context in self._contexts)
        return next((path for path in paths if self._files.read(path) is not None), None)

    def _read(self, path: str, install: PackageInstall) -> None:
        try:
            format_of(path)
            found = read_requirements(path, load_from(self._files))
        except UsageError as error:
            self.unknown.append(str(error))
            return
        wanted = [each for each in found.requirements if not each.is_optional]
        sources = install.sources
        self._require(
            [each._replace(sources=(*each.sources, *sources)) for each in wanted], install
        )

    def _require(self, wanted: Sequence[PinnedRequirement], install: PackageInstall) -> None:
        """Without those that an earlier command has installed, in a release that will do."""
        there = {each.name: each for each in self.requirements} if install.keeps_installed else {}
        new = [
            each
            for each in wanted
            if each.name not in there
            or each.extras
            or each.url
            or not _will_do(there[each.name], each)
        ]
        # Another release takes the place of the one before.
        replaced = {each.name for each in new if (each.specifier or each.url) and not each.marker}
        kept = [
            each
            for each in self.requirements
            if each.name not in replaced or not each.specifier or each.marker
        ]
        self.requirements = [*kept, *new]

    def _found(self, name: str, stage: Stage, run: Run) -> str | None:
        """The file of the project that is called this in the image, and is not changed there."""
        if "$" in name or "://" in name or os.path.basename(name) in self._changed:
            return None
        wanted = os.path.normpath(os.path.join(run.workdir, name))
        origins = self._origins(wanted, stage)
        return next((path for path in origins if self._files.read(path) is not None), None)

    def _origins(self, wanted: str, stage: Stage, depth: int = 0) -> Iterator[str]:
        """The files of the project that may have this path in a stage, perhaps through others."""
        for each in reversed(built_stages(self._dockerfile, stage).stages):
            for copy in reversed(each.copies):
                if not copy.from_stage:
                    for context in self._contexts:
                        yield from self._sources_of(copy, wanted, context)
                    continue
                other = self._dockerfile.stage(copy.from_stage)
                if other is not None and depth < _DEEPEST:
                    for path in self._sources_of(copy, wanted, os.sep):
                        yield from self._origins(path, other, depth + 1)

    @staticmethod
    def _sources_of(copy: Copy, wanted: str, context: str) -> Iterator[str]:
        """What a COPY instruction may have copied to this name."""
        target = os.path.normpath(os.path.join(copy.workdir, copy.target))
        for source in copy.sources:
            path = os.path.normpath(os.path.join(context, source.lstrip("/")))
            if path != os.path.normpath(context) and not _is_below(path, context):
                continue
            if "*" in source:
                # COPY requirements*.txt ./
                path = os.path.join(os.path.dirname(path), os.path.basename(wanted))
            if wanted == target or wanted == os.path.join(target, os.path.basename(path)):
                yield path
            if _is_below(wanted, target):
                yield os.path.normpath(os.path.join(path, os.path.relpath(wanted, target)))


def _will_do(installed: PinnedRequirement, wanted: PinnedRequirement) -> bool:
    """Whether what one requirement has installed is in the range of another one."""
    clauses = [clause.strip() for clause in wanted.specifier.split(",") if clause.strip()]
    if not clauses:
        return True
    pin = _EXACT.fullmatch(installed.specifier.strip())
    if pin is None:
        # The newest release.
        return not installed.specifier and all(clause.startswith(">") for clause in clauses)
    from packaging.specifiers import SpecifierSet

    try:
        return SpecifierSet(wanted.specifier).contains(pin[1], prereleases=True)
    # InvalidSpecifier is one; Python raises another for numbers of thousands of digits.
    except ValueError:
        return False


def _indexes(variables: Sequence[VariableSetting]) -> Iterator[PackageSource]:
    """The indexes of pip that variables choose for the commands after them."""
    for setting in variables:
        role = _INDEX_VARIABLES.get(setting.name)
        for url in (setting.value or "").split() if role is not None else ():
            if "$" not in url and role is not None:
                yield PackageSource(url, role, setting.place)


def _is_below(path: str, folder: str) -> bool:
    start = os.path.normpath(folder)
    if start == os.curdir:
        return not path.startswith((os.pardir, os.sep))
    return path.startswith(start.rstrip(os.sep) + os.sep)


def contexts(path: str) -> Iterator[str]:
    """The folders that may be the build context: that of the Dockerfile, or one above it."""
    folder = os.path.dirname(path) or os.curdir
    yield folder
    for _ in range(_HIGHEST):
        if folder in (os.curdir, os.sep) or not folder:
            return
        folder = os.path.dirname(folder) or os.curdir
        yield folder


def _copied_from(dockerfile: Dockerfile, built: Built) -> Iterator[Stage]:
    """Earlier stages whose Python packages are copied into the image."""
    for stage in built.stages:
        for copy in stage.copies:
            origin = dockerfile.stage(copy.from_stage) if copy.from_stage else None
            copied = " ".join((*copy.sources, copy.target))
            if origin is not None and origin not in built.stages and _PYTHON_FOLDERS.search(copied):
                yield from built_stages(dockerfile, origin).stages


_OWN_PROGRAM = re.compile(
    r"(?:mini|ana|mini_?|mamba)?(?:conda|forge|mamba)[\w.-]*\.sh|cuda[\w.-]*\.(?:run|sh)|cmake[\w.-]*\.sh"
    r"|google-cloud-sdk/install\.sh|bazel[\w.-]*\.sh|julia[\w.-]*\.sh|nvm\.sh|(?:^|/)(?:activate|\.bashrc|\.profile|env|setup\.bash)$",
    re.IGNORECASE,
)
"""Installers that bring a program of their own and no framework, and scripts that set variables."""
_FRAMEWORKS = re.compile(r"torch|tensorflow|jax|whl", re.IGNORECASE)


def _is_another_project(line: UnreadLine) -> bool:
    """pip install git+https://github.com/openai/whisper.git"""
    return "://" in line.place.text and not _FRAMEWORKS.search(line.place.text)


def _script(command: ShellCommand) -> str | None:
    """The shell script that a command starts; None for other commands."""
    words = command.plain_words
    if not words:
        return None
    program = words[0].rpartition("/")[2]
    if program in _SHELLS:
        is_text = any(re.fullmatch(r"-[a-z]*c", word) for word in words[1:])
        named = next((word for word in words[1:] if not word.startswith("-")), "")
    else:
        is_text, named = False, words[0] if words[0].endswith((".sh", ".bash")) else ""
    is_known = _OWN_PROGRAM.search(named) is not None
    return named if named and not is_text and not is_known and "$" not in named else None


def _pipes_a_script(command: ShellCommand, before: ShellCommand | None) -> bool:
    """curl https://example.com/install | bash"""
    words = command.plain_words
    is_shell = bool(words) and words[0].rpartition("/")[2] in _SHELLS
    if not is_shell or before is None or any(not word.startswith("-") for word in words[1:]):
        return False
    if before.plain_words[:1] not in (("curl",), ("wget",)):
        return False
    return not any(map(_INSTALLERS.search, before.words))
