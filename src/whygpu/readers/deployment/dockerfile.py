"""Reads a Dockerfile: its instructions with their lines, and the stages that they build.

It knows what BuildKit knows of the syntax: continued lines with comments between them, the escape
directive, here-documents, and variables of ARG and ENV in FROM. The published parsers for Python
know no here-documents.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from whygpu.model.deployment import ShellCommand, VariableSetting
from whygpu.model.requirement_file import FileLine
from whygpu.readers.deployment.shell_words import (
    NumberedLine,
    commands,
    substituted,
    with_inner_commands,
)

_DIRECTIVE = re.compile(r"#\s*(escape|syntax|check)\s*=\s*(\S+)", re.IGNORECASE)
_HERE_DOCUMENT = re.compile(r"<<(-?)(['\"]?)([A-Za-z_]\w*)\2")
_KEYWORD = re.compile(r"^\s{0,200}([A-Za-z]{1,20})\s(.*)", re.DOTALL)
_FLAG = re.compile(r"^--[\w-]{1,60}(?:=\S+)?\s+")
_FROM = re.compile(
    r"(?:--platform=\S+\s+)?(?P<base>\S+)(?:\s+as\s+(?P<name>\S+))?\s*", re.IGNORECASE
)
_INSTALLS = re.compile(r"\b(?:pip3?|conda|mamba|micromamba|uv|poetry|pdm|pixi)\s")
_NAMED = re.compile(r"\$\{?([A-Za-z_]\w{0,80})")
_WORDS = frozenset(
    """ADD ARG CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL MAINTAINER ONBUILD RUN SHELL
    STOPSIGNAL USER VOLUME WORKDIR""".split()  # noqa: SIM905
)


class Instruction(NamedTuple):
    keyword: str
    """In capitals."""
    text: str
    """The rest of the instruction on one line, without a here-document."""
    lines: tuple[NumberedLine, ...]
    """The lines of the rest, with continuations, without the keyword; or the here-document."""
    place: FileLine


class Copy(NamedTuple):
    """A COPY or ADD from the build context, or from another stage."""

    sources: tuple[str, ...]
    target: str
    workdir: str
    from_stage: str
    """Empty for the build context."""
    place: FileLine


class Run(NamedTuple):
    """The commands of a RUN instruction, and the folder that they run in."""

    commands: tuple[ShellCommand, ...]
    workdir: str
    place: FileLine
    mounts: bool = False
    """It mounts files of the build context: RUN --mount=type=bind."""


class Stage(NamedTuple):
    name: str
    """As another stage names it; empty if it has no name."""
    base: str | None
    """The image, or the name of an earlier stage; None if a variable in it is not known."""
    place: FileLine
    runs: tuple[Run, ...] = ()
    copies: tuple[Copy, ...] = ()
    variables: tuple[VariableSetting, ...] = ()
    started: tuple[ShellCommand, ...] = ()
    """What CMD and ENTRYPOINT start."""


class Dockerfile(NamedTuple):
    path: str
    stages: tuple[Stage, ...]
    comments: tuple[FileLine, ...] = ()
    arguments: tuple[str, ...] = ()
    """The arguments whose defaults were taken for the base or for a command."""

    def stage(self, name: str) -> Stage | None:
        """A stage by its name, or by its number."""
        for number, stage in enumerate(self.stages):
            if name and name.lower() in (stage.name.lower(), str(number)):
                return stage
        return None


def read(path: str, text: str, arguments: Mapping[str, str] | None = None) -> Dockerfile:
    """`arguments` are those that the build gets; for others, the defaults of the file count."""
    return _Reader(path, text, arguments or {}).run()


def instructions(path: str, text: str) -> Iterator[Instruction]:
    lines = [NumberedLine(number, line) for number, line in enumerate(text.split("\n"), 1)]
    escape = _escape(lines)
    position = 0
    while position < len(lines):
        first = lines[position]
        if not first.text.strip() or first.text.lstrip().startswith("#"):
            position += 1
            continue
        parts, position = _continued(lines, position, escape)
        whole = " ".join(part.text.strip() for part in parts)
        match = _KEYWORD.fullmatch(whole)
        if match is None or match[1].upper() not in _WORDS:
            continue
        keyword = match[1].upper()
        place = FileLine(path, first.number, first.text.strip())
        body = (_without_keyword(parts[0]), *parts[1:])
        ends = [found[3] for found in _HERE_DOCUMENT.finditer(whole)]
        if ends and keyword in ("RUN", "COPY", "ADD"):
            document, position = _here_documents(lines, position, ends)
            if keyword == "RUN":
                body = tuple(document)
        yield Instruction(keyword, match[2].strip(), body, place)


def _escape(lines: list[NumberedLine]) -> str:
    for line in lines:
        found = _DIRECTIVE.fullmatch(line.text.strip())
        if found is None:
            return "\\"
        if found[1].lower() == "escape":
            return found[2]
    return "\\"


def _continued(
    lines: list[NumberedLine], position: int, escape: str
) -> tuple[list[NumberedLine], int]:
    """The lines of an instruction without comments; each ends with a backslash if it goes on."""
    parts: list[NumberedLine] = []
    while position < len(lines):
        line = lines[position]
        position += 1
        if parts and (not line.text.strip() or line.text.lstrip().startswith("#")):
            continue
        text = line.text.rstrip()
        goes_on = text.endswith(escape)
        parts.append(line._replace(text=text[: -len(escape)] if goes_on else text))
        if not goes_on:
            break
    return parts, position


def _without_keyword(line: NumberedLine) -> NumberedLine:
    match = _KEYWORD.fullmatch(line.text)
    return line._replace(text=match[2] if match else "")


def _here_documents(
    lines: list[NumberedLine], position: int, ends: list[str]
) -> tuple[list[NumberedLine], int]:
    found: list[NumberedLine] = []
    for end in ends:
        while position < len(lines):
            line = lines[position]
            position += 1
            if line.text.strip() == end:
                break
            found.append(line)
    return found, position


class _Reader:
    def __init__(self, path: str, text: str, given: Mapping[str, str]) -> None:
        self._path = path
        self._text = text
        self._given = given
        """Values of arguments, instead of their defaults."""
        self._with_defaults: set[str] = set()
        self._used: set[str] = set()
        """Names of variables in FROM and in commands."""
        self._lines = [line.strip() for line in text.split("\n")]
        self._global: dict[str, str] = {}
        """Variables of ARG before the first FROM."""
        self._stages: list[Stage] = []
        self._known: dict[str, str] = {}
        self._folder = "/"
        self._handlers = {
            "FROM": self._from,
            "ARG": self._arg,
            "ENV": self._env,
            "WORKDIR": self._workdir,
            "RUN": self._run,
            "COPY": self._copy,
            "ADD": self._copy,
            "CMD": self._start,
            "ENTRYPOINT": self._start,
        }

    def run(self) -> Dockerfile:
        for instruction in instructions(self._path, self._text):
            handler = self._handlers.get(instruction.keyword)
            if handler is not None and (self._stages or instruction.keyword in ("FROM", "ARG")):
                handler(instruction)
            text = " ".join(line.text for line in instruction.lines)
            if instruction.keyword in ("FROM", "ARG") or _INSTALLS.search(text):
                self._used |= {match[1] for match in _NAMED.finditer(text)}
        comments = (
            FileLine(self._path, number, line)
            for number, line in enumerate(self._lines, 1)
            if line.startswith("#")
        )
        taken = sorted(self._with_defaults & self._used)
        return Dockerfile(self._path, tuple(self._stages), tuple(comments), tuple(taken))

    def _from(self, instruction: Instruction) -> None:
        match = _FROM.fullmatch(instruction.text)
        if match is None:
            return
        base = substituted(match["base"].strip("\"'"), self._global)
        parent = next((s for s in self._stages if s.name.lower() == base.lower() and s.name), None)
        self._known = {}
        if parent is not None:
            for setting in parent.variables:
                if setting.value is not None:
                    self._known[setting.name] = setting.value
        self._folder = "/"
        known = base if base and "$" not in base else None
        self._stages.append(Stage(match["name"] or "", known, instruction.place))

    def _arg(self, instruction: Instruction) -> None:
        for word in _split(instruction.text):
            name, has_value, value = word.partition("=")
            if has_value and name not in self._given:
                self._with_defaults.add(name)
            if not self._stages:
                if has_value or name in self._given:
                    self._global[name] = self._given.get(name, substituted(value, self._global))
            elif has_value or name in self._given:
                self._known[name] = self._given.get(name, substituted(value, self._known))
            elif name in self._global:
                self._known[name] = self._global[name]

    def _env(self, instruction: Instruction) -> None:
        text = instruction.text
        words = _split(text)
        if words and "=" not in words[0]:
            # The old form: ENV NAME the rest is the value
            name, _, value = text.partition(" ")
            pairs = [(name, value.strip().strip("\"'"))]
        else:
            pairs = [(name, value) for name, mark, value in map(_pair, words) if mark]
        for name, value in pairs:
            known = substituted(value, self._known)
            self._known[name] = known
            setting = VariableSetting(name, known, self._line_of(instruction, name))
            self._change(variables=(*self._stages[-1].variables, setting))

    def _line_of(self, instruction: Instruction, name: str) -> FileLine:
        """The line on which one of several variables is set."""
        for line in instruction.lines:
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", line.text):
                return FileLine(self._path, line.number, self._lines[line.number - 1])
        return instruction.place

    def _workdir(self, instruction: Instruction) -> None:
        known = substituted(instruction.text.strip("\"'"), self._known)
        self._folder = known if known.startswith("/") else f"{self._folder.rstrip('/')}/{known}"

    def _run(self, instruction: Instruction) -> None:
        lines = instruction.lines
        listed = _listed(instruction.text)
        if listed is not None:
            found: tuple[ShellCommand, ...] = (ShellCommand(listed, instruction.place),)
        else:
            # A backslash that was cut off at the end of a line stands for a space here.
            joined = [
                line._replace(text=line.text + "\\")
                if number + 1 < len(lines) and not _is_document(instruction)
                else line
                for number, line in enumerate(lines)
            ]
            if joined:
                joined[0] = joined[0]._replace(text=_without_flags(joined[0].text))
            found = commands(self._path, joined, self._known, stops_at_failures=False)
        mounts = "--mount=type=bind" in instruction.text
        run = Run(tuple(with_inner_commands(found)), self._folder, instruction.place, mounts)
        self._change(runs=(*self._stages[-1].runs, run))

    def _copy(self, instruction: Instruction) -> None:
        text = instruction.text
        origin = re.search(r"--from=(\S+)", text)
        plain = _without_flags(text)
        words = _listed(plain) or tuple(_split(plain))
        words = tuple(substituted(word, self._known) for word in words)
        if len(words) < 2:
            return
        copy = Copy(
            words[:-1], words[-1], self._folder, origin[1] if origin else "", instruction.place
        )
        self._change(copies=(*self._stages[-1].copies, copy))

    def _start(self, instruction: Instruction) -> None:
        words = _listed(instruction.text)
        found = (
            (ShellCommand(words, instruction.place),)
            if words is not None
            else commands(self._path, instruction.lines, self._known)
        )
        self._change(started=(*self._stages[-1].started, *found))

    def _change(self, **fields: Any) -> None:
        self._stages[-1] = self._stages[-1]._replace(**fields)


def _is_document(instruction: Instruction) -> bool:
    return bool(_HERE_DOCUMENT.search(instruction.text))


def _without_flags(text: str) -> str:
    text = text.lstrip()
    while (match := _FLAG.match(text)) is not None:
        text = text[match.end() :]
    return text


def _pair(word: str) -> tuple[str, str, str]:
    return word.partition("=")


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _listed(text: str) -> tuple[str, ...] | None:
    """The words of an instruction in JSON form; None if it is not in that form."""
    if not text.startswith("["):
        return None
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tuple(words) if all(isinstance(word, str) for word in words) else None
