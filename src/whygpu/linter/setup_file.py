"""Lints one file that is not Python: what it gives to a program, and the findings about that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from whygpu.linter.deployment import setups_of
from whygpu.linter.ignores import Ignores
from whygpu.linter.image_setup import Judge
from whygpu.linter.project_files import DiskFiles, ProjectFiles
from whygpu.linter.project_texts import ProjectTexts
from whygpu.linter.settings import Settings
from whygpu.linter.weighing import weighed
from whygpu.linter.yaml_file import IsTemplate, NotRead
from whygpu.model.cause import Cause
from whygpu.model.code_finding import FileProblem, FileProblemKind, Located
from whygpu.model.deployment import Setup, SetupFinding
from whygpu.model.finding import Finding
from whygpu.model.machine_spec import MachineSpec
from whygpu.model.program import Edit, Place, excerpt_of
from whygpu.model.requirement_file import FileLine, RequirementsFile, RequirementVerdict


class SetupAnalysis(NamedTuple):
    """The findings about one file. Some may be in files that it names."""

    found: tuple[tuple[SetupFinding, str | None], ...] = ()
    """Each with the reason why it is suppressed, or None."""
    problems: tuple[FileProblem, ...] = ()
    is_template: bool = False
    """It was not checked, because another program fills it in first."""


class _OneFirst:
    """Files of the disk, with the given text for one of them."""

    def __init__(self, path: str, text: str, others: ProjectFiles) -> None:
        self._path, self._text, self._others = path, text, others

    def read(self, path: str) -> str | None:
        return self._text if path == self._path else self._others.read(path)

    def names(self, folder: str) -> tuple[str, ...]:
        return self._others.names(folder)


def analyse_setup(
    path: str,
    text: str,
    settings: Settings,
    causes: Sequence[Cause],
    others: ProjectFiles | None = None,
) -> SetupAnalysis:
    files = _OneFirst(path, text, others or DiskFiles())
    try:
        setups = setups_of(path, text, files, _judge(settings))
    except IsTemplate:
        return SetupAnalysis(is_template=True)
    except NotRead as error:
        kind: FileProblemKind = "syntax" if error.is_syntax else "unreadable"
        return SetupAnalysis(problems=(FileProblem(path, 1, kind, str(error)),))
    except RecursionError:
        return SetupAnalysis(
            problems=(FileProblem(path, 1, "too-large", "it is nested too deeply"),)
        )
    setups = [setup._replace(machine=settings.machine) for setup in setups]
    found, crashes = judge_setups(setups, causes, ProjectTexts(path, others))
    ignores: dict[str, Ignores] = {}
    judged = []
    for item in found:
        file = item.place.file
        if item.finding.code not in {c.code for c in settings.causes_for(file, causes)}:
            continue
        if file not in ignores:
            ignores[file] = Ignores(files.read(file) or "")
        judged.append((item, _ignored(ignores[file], item)))
    problems = tuple(FileProblem(path, 1, "crashed", crash) for crash in crashes)
    return SetupAnalysis(tuple(judged), problems)


def _judge(settings: Settings) -> Judge:
    """The judge of requirements, for the machine that the user named."""
    judge, machine = settings.judge or _no_verdicts, settings.machine
    if machine is None:
        return judge
    given = machine

    def judge_there(file: RequirementsFile, known: MachineSpec) -> tuple[RequirementVerdict, ...]:
        # Python and glibc are those of the image.
        return judge(file, known._replace(driver=given.driver, gpus=given.gpus))

    return judge_there


def _no_verdicts(file: RequirementsFile, machine: MachineSpec) -> tuple[RequirementVerdict, ...]:
    return ()


def judge_setups(
    setups: Sequence[Setup], causes: Sequence[Cause], project: ProjectTexts
) -> tuple[list[SetupFinding], list[str]]:
    """Findings in the order of files and lines, one for each line and cause; and crashes.

    Each is weighed: what would make it false decides whether it is a warning, a note or nothing.
    """
    found: dict[tuple[str, str, int], SetupFinding] = {}
    crashes: list[str] = []
    for cause in causes:
        if cause.setup_detector is None:
            continue
        for setup in setups:
            try:
                for each in cause.setup_detector(setup):
                    item = weighed(each, setup, project)
                    if item is None:
                        continue
                    key = (cause.code, item.place.file, item.place.line)
                    if key not in found or _outweighs(item.finding, found[key].finding):
                        found[key] = item
            except RecursionError:
                raise
            except Exception as error:
                crashes.append(f"{cause.code}: {type(error).__name__}: {error}")
    order = sorted(found.values(), key=lambda f: (f.place.file, f.place.line, f.finding.code))
    return order, crashes


def _outweighs(one: Finding, other: Finding) -> bool:
    """Whether one is more than a note and the other is not, as for a second use of an image."""
    return one.severity != "info" and other.severity == "info"


def _ignored(ignores: Ignores, item: SetupFinding) -> str | None:
    """A comment on the line or directly above it: most of these formats have no other place."""
    line = item.place.line
    for number in (line, line - 1):
        place = Place((number, 1), (number, 1))
        reason = ignores.reason(place, item.finding.code, item.finding.cause)
        if reason is not None:
            return reason
    return None


def located(item: SetupFinding, reason: str | None, text: str) -> Located:
    place = place_in(text, item.place)
    lines = text.split("\n")
    line = lines[item.place.line - 1] if item.place.line <= len(lines) else item.place.text
    shown = excerpt_of(line.rstrip("\r"), place.start[1])
    return Located(
        item.finding,
        item.place.file,
        *place.start,
        *place.end,
        None,
        shown.text,
        bool(item.edits),
        reason,
        shown.column,
    )


def place_in(text: str, place: FileLine) -> Place:
    """The whole line without the spaces around it."""
    lines = text.split("\n")
    line = lines[place.line - 1] if place.line <= len(lines) else place.text
    first = len(line) - len(line.lstrip()) + 1
    return Place((place.line, first), (place.line, max(len(line.rstrip()) + 1, first)))


def edits_of(
    path: str, text: str, analysis: SetupAnalysis
) -> list[tuple[Finding, tuple[Edit, ...]]]:
    """Each finding in this file with its edits."""
    return [
        (
            item.finding,
            tuple(Edit(place_in(text, edit.place), edit.replacement) for edit in item.edits),
        )
        for item, reason in analysis.found
        if reason is None and item.place.file == path
    ]
