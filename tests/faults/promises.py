"""What holds after every start of whygpu, whatever it was given.

Each promise is a function from an outcome to what is wrong with it, in words; nothing is right.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from tests.faults.sandbox import Outcome
from tests.schemas import obeys

MOST_MEMORY_KIB = 300 * 1024
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u200b\u3164\U000e0041]"
)
_BUG = ("Traceback (most recent call last)", "this is a bug in whygpu", "A bug in whygpu")
_SCHEMAS = {
    "check": "check",
    "compare": "compare",
    "explain": "explain",
    "lint": "lint",
    "plan": "plan",
    "memory": "memory",
    "snapshot": "snapshot",
    "memory estimate": "memory-estimate",
    "memory find": "memory-find",
}
_REWRITES = "--fix"

Promise = Callable[[Outcome], Iterator[str]]


def the_exit_code_keeps_the_contract(outcome: Outcome) -> Iterator[str]:
    if outcome.timed_out:
        yield "it did not end"
    elif outcome.code not in outcome.case.codes:
        yield f"exit code {outcome.code}"


def there_is_no_traceback(outcome: Outcome) -> Iterator[str]:
    # What is explained may be a traceback; only our own goes to standard error.
    said = outcome.stderr.decode("utf-8", "replace")
    for words in _BUG:
        if words in said and outcome.case.argv[:1] != ("run",):
            yield f"{words!r} on standard error"


def no_escape_sequence_comes_out(outcome: Outcome) -> Iterator[str]:
    if "--diff" in outcome.case.argv:
        # A patch holds what the file holds, to the byte; terminals get another text.
        return
    for name, data in (("stdout", outcome.stdout), ("stderr", outcome.stderr)):
        text = _COLOUR.sub("", data.decode("utf-8", "backslashreplace"))
        found = _CONTROL.search(text)
        if found is not None and outcome.case.argv[:1] != ("run",):
            around = text[max(0, found.start() - 30) : found.start() + 30]
            yield f"{name} has {found.group()!r} in {around!r}"


def no_secret_comes_out(outcome: Outcome) -> Iterator[str]:
    written = b"".join(
        data for name, data in outcome.after.items() if outcome.before.get(name) != data
    )
    rewrites = _REWRITES in outcome.case.argv or "--diff" in outcome.case.argv
    everything = outcome.stdout + outcome.stderr + (b"" if rewrites else written)
    if "--diff" in outcome.case.argv:
        everything = outcome.stderr
    for secret in outcome.case.secrets:
        if secret.encode() in everything:
            yield f"the secret {secret!r} came out"


def files_change_wholly_or_not_at_all(outcome: Outcome) -> Iterator[str]:
    for name in sorted({*outcome.before, *outcome.after}):
        was, became = outcome.before.get(name), outcome.after.get(name)
        if was == became or name in outcome.case.writes:
            continue
        if became is None:
            yield f"{name} is gone"
        elif was is None:
            yield f"{name} was left behind"
        elif _REWRITES not in outcome.case.argv or not became:
            yield f"{name} was changed"


def nothing_is_left_behind(outcome: Outcome) -> Iterator[str]:
    for name in outcome.temporary:
        yield f"the temporary file {name} was left"
    for name in outcome.left:
        yield f"a process was left: {name}"


def memory_is_bounded(outcome: Outcome) -> Iterator[str]:
    if outcome.peak_kib > MOST_MEMORY_KIB:
        yield f"it took {outcome.peak_kib / 1024:.0f} MiB"


def json_obeys_its_schema(outcome: Outcome) -> Iterator[str]:
    for data in _json_of(outcome):
        verb = " ".join(outcome.case.argv[:2])
        name = _SCHEMAS.get(verb) or _SCHEMAS.get(outcome.case.argv[0])
        if name is None:
            continue
        try:
            obeys(name, data)
        except Exception as error:
            yield f"its JSON does not obey {name}: {str(error)[:300]}"


def commands_do_what_they_say(outcome: Outcome) -> Iterator[str]:
    """Every command that is offered, given to a shell that can start no program.

    The attacks plant text that creates the file `pwned` with what is built into the shell.
    """
    for command in sorted({*commands_of(_json_of(outcome))}):
        with tempfile.TemporaryDirectory(prefix="whygpu-pasted-") as folder:
            environ = {"PATH": "/nowhere", "HOME": folder}
            subprocess.run(
                ["/bin/bash", "-c", harmless(command)],
                cwd=folder,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=20,
            )
            if "pwned" in " ".join(os.listdir(folder)):
                yield f"pasting {command!r} runs what was planted"


def harmless(command: str) -> str:
    """The command with the same quotes and operators, and no way to start a program by its path.

    It may name this very machine's interpreter, and would install something there.
    """
    return "enable -n kill exec cd\n" + command.replace("/", "_")


def _json_of(outcome: Outcome) -> list[Any]:
    if outcome.code not in (0, 1, 4) or outcome.case.argv[:1] == ("run",):
        return []
    if not {"--json", "snapshot"} & set(outcome.case.argv) or "--diff" in outcome.case.argv:
        return []
    text = outcome.stdout.decode("utf-8")
    if not text.strip():
        return []
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]


def commands_of(value: Any) -> Iterator[str]:
    """Everything in an answer that is offered to be pasted."""
    if isinstance(value, list):
        for item in value:
            yield from commands_of(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("command", "commands", "preparations", "verify"):
                offered = item if isinstance(item, list) else [item]
                yield from (text for text in offered if isinstance(text, str))
            else:
                yield from commands_of(item)


PROMISES: tuple[Promise, ...] = (
    the_exit_code_keeps_the_contract,
    there_is_no_traceback,
    no_escape_sequence_comes_out,
    no_secret_comes_out,
    files_change_wholly_or_not_at_all,
    nothing_is_left_behind,
    memory_is_bounded,
    json_obeys_its_schema,
    commands_do_what_they_say,
)


def broken(outcome: Outcome) -> list[str]:
    """Every promise that was not kept, with what was seen."""
    return [
        f"{promise.__name__.replace('_', ' ')}: {problem}"
        for promise in PROMISES
        for problem in promise(outcome)
    ]
