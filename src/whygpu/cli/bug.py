"""A bug in whygpu becomes a report that can be pasted into an issue."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from whygpu.cli import output
from whygpu.errors import exit_code_of_bug
from whygpu.version import VERSION

NEEDED = ("packaging", "pynvml", "resolvelib", "tomli")
"""The modules of the packages that pyproject.toml requires."""
NEW_ISSUE = "https://github.com/whygpu/whygpu/issues/new?template=bug.yml"


def failed(error: BaseException, arguments: Sequence[str]) -> int:
    """Report a bug on standard error; returns the exit code for it."""
    missing = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
    if missing in NEEDED:
        output.say(
            f"{missing} is missing, without which whygpu cannot work; install whygpu again, "
            f"together with what it needs: {sys.executable} -m pip install --force-reinstall whygpu"
        )
    else:
        report(error, arguments)
    return exit_code_of_bug(arguments)


def report(error: BaseException, arguments: Sequence[str]) -> None:
    """Save the report and say where it is. A failure while reporting does not hide the bug."""
    try:
        _report(error, arguments)
    except Exception as failure:
        # Without their messages: the redaction itself may have failed.
        names = f"{type(error).__name__}, then {type(failure).__name__} while reporting it"
        output.say_own(f"whygpu: this is a bug in whygpu: {names}\n")


def _report(error: BaseException, arguments: Sequence[str]) -> None:
    import platform

    from whygpu.model.shell import joined

    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    text = (
        "## whygpu failed\n\n"
        f"whygpu {VERSION}, Python {platform.python_version()}, {platform.platform()}\n\n"
        f"Command: `whygpu {joined(arguments)}`\n\n"
        f"```\n{trace}```\n"
    )
    output.say(f"this is a bug in whygpu: {type(error).__name__}: {error}")
    try:
        path = _save(output.plain(text))
    except OSError as failure:
        output.say(f"the report could not be saved ({failure}); here it is:\n\n{text}")
        return
    output.say_own(
        f"Please report it at {NEW_ISSUE}\n"
        f"A text ready to paste, private data removed, is in\n  {path}\n"
    )


def _save(text: str) -> str:
    import tempfile

    from whygpu.host.writing import write_file

    path = os.path.join(tempfile.gettempdir(), f"whygpu-bug-{os.urandom(6).hex()}.md")
    write_file(path, text.encode("utf-8"), mode=0o600)
    return path
