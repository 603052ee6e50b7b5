"""No value that a cause reads gets into a command as anything but one quoted argument.

Every example of the catalogue is given again with its values made hostile, one after the other, and
what the remedies then print is pasted into a real shell that has no programs.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import each
from tests.kit import command_of, examples, machine, machine_examples, run
from tests.pasting import parses_in_posix_shell, paste
from whygpu.causes import catalogue
from whygpu.diagnosis.engine import outcome_of
from whygpu.model.cause import Cause
from whygpu.model.finding import Finding, Remedy
from whygpu.model.observed import need
from whygpu.model.remedy import InstallFramework
from whygpu.model.snapshot import Snapshot
from whygpu.readers.log import read_text

MARK = "pwned"
PAYLOADS = (
    f"'&&touch${{IFS}}{MARK}&&echo'",
    f"$(touch${{IFS}}{MARK})",
    f"`touch${{IFS}}{MARK}`",
    f";touch${{IFS}}{MARK};>{MARK};'",
    f'";touch${{IFS}}{MARK};"',
    f"|touch${{IFS}}{MARK}&",
    f" --{MARK} $(touch {MARK}) \u2019;touch {MARK}",
    f"\ntouch {MARK}\n",
    f"\\';touch${{IFS}}{MARK}#",
    f"~$HOME{{{MARK},b}}*?[a]!!",
)
"""Each is put behind a value; the next ones take the place of one."""
REPLACEMENTS = (f"-{MARK};>{MARK}", f"~/{MARK} it's; >{MARK}")


WORD = re.compile(r"[\w.+-]{3,}")
"""A part of a path, a name, a version."""


def spoiled(value: Any, old: str, new: str) -> Any:
    """A value of the model in which one piece of text is another, wherever it is."""
    if isinstance(value, str):
        return value.replace(old, new)
    if not isinstance(value, tuple):
        if not hasattr(value, "source"):
            return value
        kept = {"source": spoiled(value.source, old, new)}
        if hasattr(value, "value"):
            kept["value"] = spoiled(value.value, old, new)
        return type(value)(**kept)
    items = [spoiled(item, old, new) for item in value]
    if all(item is before for item, before in zip(items, value, strict=True)):
        return value
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)


def texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from texts_of(item)
    elif hasattr(value, "source"):
        yield value.source
        yield from texts_of(getattr(value, "value", None))


def commands_on_machines(cause: Cause) -> Iterator[str]:
    for example in machine_examples(cause):
        if example.expectation != "fires":
            continue
        seen = machine(example.text)
        for old, new in replacements(seen, " ".join(commands_on(cause, seen))):
            yield from commands_on(cause, spoiled(seen, old, new), seen)


def replacements(seen: Snapshot, printed: str) -> Iterator[tuple[str, str]]:
    """Every payload for what is in a command, one for every other text."""
    texts = sorted(set(texts_of(seen)) - {""})
    words = {word for text in texts for word in (text, *WORD.findall(text)) if word in printed}
    for word in sorted(words):
        yield from ((word, word + payload) for payload in PAYLOADS)
        yield from ((word, replacement) for replacement in REPLACEMENTS)
    for number, text in enumerate(texts):
        yield text, text + PAYLOADS[number % len(PAYLOADS)]


def commands_on(cause: Cause, seen: Snapshot, planned_for: Snapshot | None = None) -> Iterator[str]:
    for finding in outcome_of(cause, seen).findings:
        yield from commands_of(finding, seen, planned_for)


def commands_of(
    finding: Finding, seen: Snapshot | None = None, planned_for: Snapshot | None = None
) -> Iterator[str]:
    for remedy in finding.remedies:
        command = command_of(remedy, seen, planned_for)
        if command is not None:
            yield command
    # The question that would settle it may hold a command in backquotes.
    yield from re.findall(r"`([^`]+)`", finding.ask or "") if MARK in (finding.ask or "") else ()


def spoiled_logs(text: str, lines: set[int]) -> Iterator[str]:
    """The log with a payload behind each word of the lines that were the evidence."""
    rows = text.split("\n")
    number = 0
    for line in sorted(lines):
        row = rows[line - 1]
        for match in re.finditer(r"[^\s'\"]+", row):
            payload = PAYLOADS[number % len(PAYLOADS)]
            number += 1
            changed = row[: match.end()] + payload + row[match.end() :]
            yield "\n".join([*rows[: line - 1], changed, *rows[line:]])


def commands_in_logs(cause: Cause) -> Iterator[str]:
    assert cause.log_detector is not None
    for example in examples(cause.page):
        if (example.kind, example.expectation) != ("log", "fires"):
            continue
        found = list(cause.log_detector(read_text(example.text)))
        lines = {item.line for f in found for item in f.evidence if item.line is not None}
        for text in spoiled_logs(example.text, lines):
            for finding in cause.log_detector(read_text(text)):
                yield from commands_of(finding)


def are_harmless(commands: set[str], folder: pathlib.Path) -> None:
    ordered = sorted(commands)
    for pasted in paste(ordered, folder):
        assert not pasted.unexpected, pasted
        assert not pasted.broken, pasted
    assert parses_in_posix_shell(ordered)
    assert not list(folder.iterdir()), "a pasted command has made a file"


machine_judges = [cause for cause in catalogue() if cause.machine_detector is not None]
log_judges = [cause for cause in catalogue() if cause.log_detector is not None]


@pytest.mark.parametrize("family", sorted({cause.code[2] for cause in machine_judges}))
def test_hostile_machines_get_no_command_of_their_own(family: str, tmp_path: pathlib.Path) -> None:
    judges = [cause for cause in machine_judges if cause.code[2] == family]
    folder = tmp_path / "here"
    folder.mkdir()
    are_harmless({text for cause in judges for text in commands_on_machines(cause)}, folder)


@pytest.mark.parametrize("family", sorted({cause.code[2] for cause in log_judges}))
def test_hostile_logs_get_no_command_of_their_own(family: str, tmp_path: pathlib.Path) -> None:
    judges = [cause for cause in log_judges if cause.code[2] == family]
    folder = tmp_path / "here"
    folder.mkdir()
    are_harmless({text for cause in judges for text in commands_in_logs(cause)}, folder)


def test_the_shell_of_these_tests_sees_what_a_command_hides(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    commands = [f"python -m pip install 'numpy{payload}'" for payload in PAYLOADS[:1]]
    (hidden,) = paste(commands, folder)
    assert hidden.unexpected == (("touch", MARK),)
    (broken,) = paste(["python 'x"], folder)
    assert broken.broken
    paste([f"python >{MARK}"], folder)
    assert [path.name for path in folder.iterdir()] == [MARK]


def test_many_hostile_values_do_reach_commands() -> None:
    """Else the tests above would prove nothing."""
    judges = [cause for cause in machine_judges if cause.code[2] == "2"]
    commands = {text for cause in judges for text in commands_on_machines(cause)}
    assert sum(MARK in command for command in commands) > 20


@each("payload", PAYLOADS[:4])
def test_the_planner_takes_hostile_facts_of_a_machine_for_unknown_ones(payload: str) -> None:
    usual = machine()
    interpreter = need(usual.target.interpreter)
    facts = ("550.54.14", interpreter.version, need(usual.system.libc).version, "x86_64", "RTX")
    for fact in facts:
        seen = spoiled(usual, fact, fact + payload)
        command = command_of(Remedy("Install it.", InstallFramework("torch")), seen, seen)
        assert command is None or command.startswith("python -m pip install torch==")


def test_ordinary_examples_print_commands() -> None:
    printed = [
        command
        for cause in machine_judges
        for example in machine_examples(cause)
        if example.expectation == "fires"
        for finding in run(cause, machine(example.text)).findings
        for command in commands_of(finding, machine(example.text))
    ]
    assert len(printed) > 60
